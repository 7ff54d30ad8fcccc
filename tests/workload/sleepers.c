/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads blocked in one system call. Each call is made with all six argument registers set, those
 * that it does not use to known magic values, so that every saved register can be checked. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "workload.h"

#define ARG_COUNT 6
#define MAGIC 0x5a5a0000c0de0000l
#define FAR_S (1l << 20)
#define NO_FD (-1)

static char buffer[65536];
static const struct timespec far = {.tv_sec = FAR_S};
static int futex_word;
static sigset_t signals;

/* Sets the arguments that the call uses. */
static void pipe_read(long *arg)
{
	int fds[2];

	make_pipe(fds);
	arg[0] = fds[0];
	arg[1] = (long)buffer;
	arg[2] = 4096;
}

static void pipe_write(long *arg)
{
	int fds[2];

	make_pipe(fds);
	fcntl(fds[1], F_SETFL, O_NONBLOCK);
	while (write(fds[1], buffer, sizeof(buffer)) > 0)
		;
	fcntl(fds[1], F_SETFL, 0);
	arg[0] = fds[1];
	arg[1] = (long)buffer;
	arg[2] = 4096;
}

static void read_of(long *arg, int fd)
{
	if (fd < 0)
		die("open a descriptor to read");
	arg[0] = fd;
	arg[1] = (long)buffer;
	arg[2] = 512;
}

static void read_eventfd(long *arg)
{
	read_of(arg, eventfd(0, EFD_CLOEXEC));
}

static void read_timerfd(long *arg)
{
	struct itimerspec when = {.it_value = far};
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

	timerfd_settime(fd, 0, &when, NULL);
	read_of(arg, fd);
}

static void read_inotify(long *arg)
{
	read_of(arg, inotify_init1(IN_CLOEXEC));
}

static void read_signalfd(long *arg)
{
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	read_of(arg, signalfd(-1, &signals, SFD_CLOEXEC));
}

static void pty_read(long *arg)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);

	if (master < 0 || grantpt(master) || unlockpt(master))
		unready("no pseudo terminals here");
	read_of(arg, open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC));
}

static void socket_read(long *arg)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		die("socketpair");
	arg[0] = fds[0];
	arg[1] = (long)buffer;
	arg[2] = 4096;
	arg[3] = 0;
	arg[4] = arg[5] = 0;
}

static void socket_accept(long *arg)
{
	struct sockaddr_un local = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	/* Binds the family alone: the kernel then chooses an abstract name, unix(7). */
	if (fd < 0 || bind(fd, (struct sockaddr *)&local, sizeof(sa_family_t)) || listen(fd, 1))
		die("listen");
	arg[0] = fd;
	arg[1] = arg[2] = arg[3] = 0;
}

static void futex_wait(long *arg)
{
	arg[0] = (long)&futex_word;
	arg[1] = FUTEX_WAIT_PRIVATE;
	arg[2] = 0;
	arg[3] = 0;
}

static void far_nanosleep(long *arg)
{
	arg[0] = (long)&far;
	arg[1] = 0;
}

static void far_clock_nanosleep(long *arg)
{
	arg[0] = CLOCK_MONOTONIC;
	arg[1] = 0;
	arg[2] = (long)&far;
	arg[3] = 0;
}

static void poll_pipe(long *arg)
{
	static struct pollfd poll_fds[1];
	int fds[2];

	make_pipe(fds);
	poll_fds[0] = (struct pollfd){.fd = fds[0], .events = POLLIN};
	arg[0] = (long)poll_fds;
	arg[1] = 1;
	arg[2] = (int)FAR_S * 1000;
}

static void ppoll_pipe(long *arg)
{
	poll_pipe(arg);
	arg[2] = 0;
	arg[3] = 0;
	arg[4] = 8;
}

static void select_nothing(long *arg)
{
	for (int i = 0; i < ARG_COUNT; i++)
		arg[i] = 0;
}

static void epoll_pipe(long *arg)
{
	static struct epoll_event events[8];
	struct epoll_event event = {.events = EPOLLIN};
	int fd = epoll_create1(EPOLL_CLOEXEC), fds[2];

	make_pipe(fds);
	if (fd < 0 || epoll_ctl(fd, EPOLL_CTL_ADD, fds[0], &event))
		die("epoll");
	arg[0] = fd;
	arg[1] = (long)events;
	arg[2] = 8;
	arg[3] = -1;
	arg[4] = 0;
	arg[5] = 8;
}

static void signal_wait(long *arg)
{
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR2);
	arg[0] = (long)&signals;
	arg[1] = arg[2] = 0;
	arg[3] = 8;
}

/* Opens a queue by system call: mq_open is in librt before glibc 2.34. */
static void message_wait(long *arg)
{
	struct mq_attr attr = {.mq_maxmsg = 1, .mq_msgsize = 512};
	char name[64];
	long queue;

	snprintf(name, sizeof(name), "tsnap-test-%d", getpid());
	queue = syscall(SYS_mq_open, name, O_RDWR | O_CREAT | O_EXCL, 0600, &attr);
	if (queue < 0)
		unready("no POSIX message queues here");
	syscall(SYS_mq_unlink, name);
	arg[0] = queue;
	arg[1] = (long)buffer;
	arg[2] = 512;
	arg[3] = 0;
	arg[4] = 0;
}

static void child_wait(long *arg)
{
	pid_t pid = child_fork();

	if (!pid)
		for (;;)
			pause();
	arg[0] = pid;
	arg[1] = arg[2] = arg[3] = 0;
}

/* Prepares a wait for a file whose name has what breaks naive output. */
static void flock_wait(long *arg)
{
	const char *dir = option_text("dir", "/tmp");
	char path[4096];
	int held, fd;

	snprintf(path, sizeof(path), "%s/tsnap-test-%d ,\"quoted\"\n\x1b[31m'\xff", dir, getpid());
	held = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	fd = open(path, O_RDWR | O_CLOEXEC);
	unlink(path);
	if (held < 0 || fd < 0 || flock(held, LOCK_EX))
		die("lock a file");
	arg[0] = fd;
	arg[1] = LOCK_EX;
}

struct sleeper {
	const char *name;
	const char *syscall;
	long nr;
	int fd_arg; /* index of the argument that is a descriptor, or NO_FD */
	void (*prepare)(long *arg);
};

#define CALL(call) #call, SYS_##call
/* clang-format off */
static const struct sleeper sleepers[] = {
	{"pipe_read",    CALL(read),             0,     pipe_read},
	{"pipe_write",   CALL(write),            0,     pipe_write},
	{"eventfd_read", CALL(read),             0,     read_eventfd},
	{"timerfd_read", CALL(read),             0,     read_timerfd},
	{"inotify_read", CALL(read),             0,     read_inotify},
	{"signalfd_read",CALL(read),             0,     read_signalfd},
	{"pty_read",     CALL(read),             0,     pty_read},
	{"socket_read",  CALL(recvfrom),         0,     socket_read},
	{"socket_accept",CALL(accept4),          0,     socket_accept},
	{"futex",        CALL(futex),            NO_FD, futex_wait},
	{"nanosleep",    CALL(clock_nanosleep),  NO_FD, far_clock_nanosleep},
	{"old_nanosleep",CALL(nanosleep),        NO_FD, far_nanosleep},
	{"ppoll",        CALL(ppoll),            NO_FD, ppoll_pipe},
	{"pselect",      CALL(pselect6),         NO_FD, select_nothing},
	{"epoll_pwait",  CALL(epoll_pwait),      0,     epoll_pipe},
#ifdef SYS_poll /* arm64 has the newer calls only */
	{"poll",         CALL(poll),             NO_FD, poll_pipe},
	{"epoll",        CALL(epoll_wait),       0,     epoll_pipe},
	{"pause",        CALL(pause),            NO_FD, NULL},
#endif
	{"sigtimedwait", CALL(rt_sigtimedwait),  NO_FD, signal_wait},
	{"mq_receive",   CALL(mq_timedreceive),  0,     message_wait},
	{"wait4",        CALL(wait4),            NO_FD, child_wait},
	{"flock",        CALL(flock),            0,     flock_wait},
};
/* clang-format on */
#define SLEEPER_COUNT (sizeof(sleepers) / sizeof(sleepers[0]))

struct call {
	long nr;
	long arg[ARG_COUNT];
};

static void call_forever(void *data)
{
	const struct call *call = data;
	const long *a = call->arg;

	for (;;)
		syscall(call->nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static void ready_add_call(const struct sleeper *sleeper, const struct call *call)
{
	char args[256], link[64], file[4096];
	size_t length = 0;
	ssize_t n;

	ready_call('S', sleeper->syscall, call->nr);
	for (int i = 0; i < ARG_COUNT; i++)
		length += (size_t)snprintf(args + length, sizeof(args) - length, "%s%#lx",
					   i ? "," : "", call->arg[i]);
	line_add("args", "%s", args);
	if (sleeper->fd_arg == NO_FD)
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%ld", call->arg[sleeper->fd_arg]);
	n = readlink(link, file, sizeof(file) - 1);
	if (n < 0)
		die("readlink");
	file[n] = 0;
	line_add("fd", "%ld", call->arg[sleeper->fd_arg]);
	line_add("file", "%s", file);
}

static void sleeper_run(const struct sleeper *sleeper)
{
	struct call call = {.nr = sleeper->nr};
	struct subject subject;

	for (int i = 0; i < ARG_COUNT; i++)
		call.arg[i] = MAGIC + i;
	if (sleeper->prepare)
		sleeper->prepare(call.arg);
	subject_start(&subject, sleeper->name, call_forever, &call);
	await_state(getpid(), subject.tid, "S", call.nr);
	ready_begin(subject.tid, getpid());
	ready_add_call(sleeper, &call);
	line_end();
	hold();
}

static void sleep_run(void)
{
	const char *name = option_text("call", "pipe_read");

	for (size_t i = 0; i < SLEEPER_COUNT; i++)
		if (!strcmp(sleepers[i].name, name))
			return sleeper_run(&sleepers[i]);
	unready("there is no such call on this architecture");
}

static void sleep_calls_run(void)
{
	for (size_t i = 0; i < SLEEPER_COUNT; i++)
		puts(sleepers[i].name);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void mutex_take(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&mutex);
}

static void mutex_run(void)
{
	struct subject subject;

	pthread_mutex_lock(&mutex);
	subject_start(&subject, "mutex", mutex_take, NULL);
	await_state(getpid(), subject.tid, "S", SYS_futex);
	ready_begin(subject.tid, getpid());
	ready_call('S', "futex", SYS_futex);
	line_end();
	hold();
}

const struct workload sleep_workloads[] = {
	{"sleep", "call=NAME dir=PATH", "a thread blocked in one system call (see sleep_calls)",
	 sleep_run},
	{"sleep_calls", "", "lists the calls that sleep knows", sleep_calls_run},
	{"mutex", "", "a thread waits for a mutex that another holds", mutex_run},
	{0},
};
