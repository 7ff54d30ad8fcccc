/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads that wait for something or somebody; the ready line tells what and whom, in tsnap's
 * words. In connection, waits_on and remote. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "workload.h"

#define OTHER "other" /* comm of the process at the other end */

/* What a row prepares, and what a thread then does for ever. */
struct waiting {
	long nr;
	long arg[6];
	int fd;		     /* that the call is about; -1: none */
	void (*run)(void *); /* instead of the call */
	pid_t pid;	     /* waits_on_pid; 0: none */
	char waits_on[256], connection[256], remote[128], file[256];
	const char *filetype;
	long inflight;	/* -1: none */
	int semaphores; /* to remove; -1: none */
};

static char buffer[4096];

static void forever(void)
{
	for (;;)
		pause();
}

/* A process that keeps what it has, called `other`. */
static pid_t other_start(int close_fd)
{
	pid_t pid = child_fork();

	if (!pid) {
		prctl(PR_SET_NAME, OTHER);
		close(close_fd);
		forever();
	}
	/* its name is there before it is asked for */
	await_state(pid, pid, "S", NR_ANY);
	return pid;
}

static void read_of(struct waiting *w, int fd)
{
	if (fd < 0)
		die("open a descriptor to read");
	w->nr = SYS_read;
	w->fd = fd;
	w->arg[0] = fd;
	w->arg[1] = (long)buffer;
	w->arg[2] = sizeof(buffer);
}

static int tcp_listen(struct sockaddr_in *address)
{
	socklen_t size = sizeof(*address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*address = (struct sockaddr_in){.sin_family = AF_INET,
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	if (fd < 0 || bind(fd, (struct sockaddr *)address, sizeof(*address)) || listen(fd, 4) ||
	    getsockname(fd, (struct sockaddr *)address, &size))
		unready("no TCP on the loopback device here");
	return fd;
}

static int tcp_connect(const struct sockaddr_in *address, int *port)
{
	struct sockaddr_in own;
	socklen_t size = sizeof(own);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || connect(fd, (const struct sockaddr *)address, sizeof(*address)) ||
	    getsockname(fd, (struct sockaddr *)&own, &size))
		die("connect");
	*port = ntohs(own.sin_port);
	return fd;
}

/* The other process serves, this thread is its client; or the other way round. */
static void tcp_pair(struct waiting *w, bool client)
{
	struct sockaddr_in address;
	int listening = tcp_listen(&address), server = ntohs(address.sin_port), port, near, far;

	far = tcp_connect(&address, &port);
	near = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
	if (client) {
		int swap = far;

		far = near;
		near = swap;
	}
	w->pid = other_start(near);
	close(far);
	read_of(w, near);
	snprintf(w->remote, sizeof(w->remote), "127.0.0.1:%d", client ? server : port);
	snprintf(w->connection, sizeof(w->connection), "tcp 127.0.0.1:%d->%s established",
		 client ? port : server, w->remote);
	snprintf(w->waits_on, sizeof(w->waits_on), "tcp %s peer %d " OTHER, w->remote, w->pid);
	w->filetype = "socket";
}

static void tcp_client(struct waiting *w)
{
	tcp_pair(w, true);
}

static void tcp_server(struct waiting *w)
{
	tcp_pair(w, false);
}

static void tcp_accept(struct waiting *w)
{
	struct sockaddr_in address;

	w->fd = tcp_listen(&address);
	w->nr = SYS_accept4;
	w->arg[0] = w->fd;
	snprintf(w->connection, sizeof(w->connection), "tcp 127.0.0.1:%d listen",
		 ntohs(address.sin_port));
	strcpy(w->waits_on, w->connection);
	w->filetype = "socket";
}

static void tcp6_accept(struct waiting *w)
{
	struct sockaddr_in6 address = {.sin6_family = AF_INET6};
	socklen_t size = sizeof(address);

	w->fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (w->fd < 0 || bind(w->fd, (struct sockaddr *)&address, size) || listen(w->fd, 4) ||
	    getsockname(w->fd, (struct sockaddr *)&address, &size))
		unready("no IPv6 here");
	w->nr = SYS_accept4;
	w->arg[0] = w->fd;
	snprintf(w->connection, sizeof(w->connection), "tcp [::]:%d listen",
		 ntohs(address.sin6_port));
	strcpy(w->waits_on, w->connection);
}

static void udp(struct waiting *w)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr_in far = {.sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				  .sin_port = htons(53)};
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, size) ||
	    connect(fd, (struct sockaddr *)&far, size) ||
	    getsockname(fd, (struct sockaddr *)&address, &size))
		unready("no UDP on the loopback device here");
	read_of(w, fd);
	strcpy(w->remote, "127.0.0.1:53");
	snprintf(w->connection, sizeof(w->connection), "udp 127.0.0.1:%d->127.0.0.1:53",
		 ntohs(address.sin_port));
	strcpy(w->waits_on, "udp 127.0.0.1:53");
}

static void netlink(struct waiting *w)
{
	read_of(w, socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
	strcpy(w->connection, "netlink");
	strcpy(w->waits_on, "netlink");
}

static void unix_pair(struct waiting *w)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		die("socketpair");
	w->pid = other_start(fds[0]);
	close(fds[1]);
	read_of(w, fds[0]);
	snprintf(w->connection, sizeof(w->connection), "unix peer %d " OTHER, w->pid);
	strcpy(w->waits_on, w->connection);
}

static void unix_path(struct waiting *w)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), far,
	    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s/tsnap-test-%d.sock",
		 option_text("dir", "/tmp"), getpid());
	unlink(address.sun_path);
	if (bind(listening, (struct sockaddr *)&address, sizeof(address)) || listen(listening, 1) ||
	    connect(fd, (struct sockaddr *)&address, sizeof(address)))
		die(address.sun_path);
	far = accept(listening, NULL, NULL);
	unlink(address.sun_path);
	w->pid = other_start(fd);
	close(far);
	read_of(w, fd);
	strcpy(w->remote, address.sun_path);
	snprintf(w->connection, sizeof(w->connection), "unix %s peer %d " OTHER, address.sun_path,
		 w->pid);
	strcpy(w->waits_on, w->connection);
}

static void pipe_reader(struct waiting *w)
{
	int fds[2];

	make_pipe(fds);
	w->pid = other_start(fds[0]);
	close(fds[1]);
	read_of(w, fds[0]);
	snprintf(w->waits_on, sizeof(w->waits_on), "pipe from %d " OTHER, w->pid);
	w->filetype = "pipe";
}

static void pipe_writer(struct waiting *w)
{
	int fds[2];

	make_pipe(fds);
	fcntl(fds[1], F_SETFL, O_NONBLOCK);
	while (write(fds[1], buffer, sizeof(buffer)) > 0)
		;
	fcntl(fds[1], F_SETFL, 0);
	w->pid = other_start(fds[1]);
	close(fds[0]);
	read_of(w, fds[1]);
	w->nr = SYS_write;
	snprintf(w->waits_on, sizeof(w->waits_on), "pipe to %d " OTHER, w->pid);
}

static void pipe_own(struct waiting *w)
{
	int fds[2];

	make_pipe(fds);
	w->pid = getpid();
	read_of(w, fds[0]);
	snprintf(w->waits_on, sizeof(w->waits_on), "pipe from %d workload", w->pid);
}

static void fifo_make(char *path, size_t size)
{
	snprintf(path, size, "%s/tsnap-test-%d.fifo", option_text("dir", "/tmp"), getpid());
	if (mkfifo(path, 0600))
		die(path);
}

/* Waits for somebody to open the other end. */
static void fifo_open(struct waiting *w)
{
	fifo_make(w->file, sizeof(w->file));
	w->nr = SYS_openat;
	w->arg[0] = AT_FDCWD;
	w->arg[1] = (long)w->file;
	w->arg[2] = O_RDONLY;
	strcpy(w->waits_on, w->file);
}

/* The same, of a path that is relative to a descriptor. */
static void fifo_open_relative(struct waiting *w)
{
	static char name[64];

	fifo_make(w->file, sizeof(w->file));
	strcpy(name, strrchr(w->file, '/') + 1);
	w->nr = SYS_openat;
	w->fd = open(option_text("dir", "/tmp"), O_PATH | O_DIRECTORY | O_CLOEXEC);
	w->arg[0] = w->fd;
	w->arg[1] = (long)name;
	w->arg[2] = O_RDONLY;
	strcpy(w->waits_on, w->file);
}

static void fifo_reader(struct waiting *w)
{
	char path[128];
	int fds[2];

	fifo_make(path, sizeof(path));
	fds[1] = open(path, O_RDWR | O_CLOEXEC);
	fds[0] = open(path, O_RDONLY | O_CLOEXEC);
	w->pid = other_start(fds[0]);
	close(fds[1]);
	read_of(w, fds[0]);
	snprintf(w->waits_on, sizeof(w->waits_on), "%s from %d " OTHER, path, w->pid);
	w->filetype = "fifo";
}

static void eventfd_reader(struct waiting *w)
{
	read_of(w, eventfd(0, EFD_CLOEXEC));
	strcpy(w->waits_on, "eventfd count 0");
	w->filetype = "eventfd";
}

static void inotify_reader(struct waiting *w)
{
	read_of(w, inotify_init1(IN_CLOEXEC));
	strcpy(w->waits_on, "inotify");
	w->filetype = "inotify";
}

static void timerfd_reader(struct waiting *w)
{
	struct itimerspec when = {.it_value.tv_sec = 1000000};
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

	timerfd_settime(fd, 0, &when, NULL);
	read_of(w, fd);
	strcpy(w->waits_on, "timerfd 9999*s left");
	w->filetype = "timerfd";
}

static void pidfd_poll(struct waiting *w)
{
	static struct pollfd polled;

	w->pid = other_start(-1);
#ifdef SYS_pidfd_open
	polled.fd = (int)syscall(SYS_pidfd_open, w->pid, 0);
#else
	polled.fd = -1;
#endif
	if (polled.fd < 0)
		unready("no pidfd here");
	polled.events = POLLIN;
	w->nr = SYS_ppoll;
	w->arg[0] = (long)&polled;
	w->arg[1] = 1;
	snprintf(w->waits_on, sizeof(w->waits_on), "1 fd: pid %d " OTHER, w->pid);
}

static void poll_two(struct waiting *w)
{
	static struct pollfd polled[3];
	int fds[2];

	make_pipe(fds);
	w->pid = 0;
	polled[0] = (struct pollfd){.fd = eventfd(0, EFD_CLOEXEC), .events = POLLIN};
	polled[1] = (struct pollfd){.fd = -1, .events = POLLIN};
	polled[2] = (struct pollfd){.fd = fds[0], .events = POLLIN};
	w->nr = SYS_ppoll;
	w->arg[0] = (long)polled;
	w->arg[1] = 3;
	snprintf(w->waits_on, sizeof(w->waits_on), "2 fds: eventfd count 0, pipe from %d workload",
		 getpid());
}

static void select_two(struct waiting *w)
{
	static fd_set set;
	int fds[2];

	make_pipe(fds);
	FD_ZERO(&set);
	FD_SET(fds[0], &set);
	w->nr = SYS_pselect6;
	w->arg[0] = fds[0] + 1;
	w->arg[1] = (long)&set;
	w->pid = getpid();
	snprintf(w->waits_on, sizeof(w->waits_on), "1 fd: pipe from %d workload", getpid());
}

static void epoll_of(struct waiting *w, int count)
{
	struct epoll_event event = {.events = EPOLLIN};
	static struct epoll_event events[8];

	w->fd = epoll_create1(EPOLL_CLOEXEC);
	for (int i = 0; i < count; i++)
		if (epoll_ctl(w->fd, EPOLL_CTL_ADD, eventfd(0, EFD_CLOEXEC), &event))
			die("epoll");
	w->nr = SYS_epoll_pwait;
	w->arg[0] = w->fd;
	w->arg[1] = (long)events;
	w->arg[2] = 8;
	w->arg[3] = -1;
	w->filetype = "epoll";
}

static void epoll_two(struct waiting *w)
{
	epoll_of(w, 2);
	strcpy(w->waits_on, "2 fds: eventfd count 0, eventfd count 0");
}

static void epoll_many(struct waiting *w)
{
	epoll_of(w, 200);
	strcpy(w->waits_on, "200 fds");
}

static void child(struct waiting *w)
{
	w->pid = other_start(-1);
	w->nr = SYS_wait4;
	w->arg[0] = w->pid;
	snprintf(w->waits_on, sizeof(w->waits_on), "pid %d " OTHER, w->pid);
}

static void child_id(struct waiting *w)
{
	w->pid = other_start(-1);
	w->nr = SYS_waitid;
	w->arg[0] = P_PID;
	w->arg[1] = w->pid;
	w->arg[3] = WEXITED;
	snprintf(w->waits_on, sizeof(w->waits_on), "pid %d " OTHER, w->pid);
}

static void timer(struct waiting *w)
{
	static const struct timespec far = {.tv_sec = 1000000};

	w->nr = SYS_clock_nanosleep;
	w->arg[0] = CLOCK_MONOTONIC;
	w->arg[2] = (long)&far;
	strcpy(w->waits_on, "timer");
}

static pthread_mutex_t mutex;

static void mutex_take(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&mutex);
}

static void mutex_hold(void *unused)
{
	pthread_mutex_lock(&mutex);
	(void)unused;
	forever();
}

/* pthread_mutex_* of this C library is taken to be glibc's: its word is the first. */
static void mutex_of(struct waiting *w, void (*set)(pthread_mutexattr_t *))
{
	static struct subject holder;
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	if (set)
		set(&attributes);
	if (pthread_mutex_init(&mutex, &attributes))
		unready("no such mutex here");
	subject_start(&holder, "holder", mutex_hold, NULL);
	await_state(getpid(), holder.tid, "S", NR_ANY);
	w->nr = SYS_futex;
	w->run = mutex_take;
	w->pid = getpid();
	snprintf(w->waits_on, sizeof(w->waits_on), "mutex %#lx held by %d holder", (long)&mutex,
		 holder.tid);
}

static void mutex_plain(struct waiting *w)
{
	mutex_of(w, NULL);
}

static void set_recursive(pthread_mutexattr_t *attributes)
{
	pthread_mutexattr_settype(attributes, PTHREAD_MUTEX_RECURSIVE);
}

static void mutex_recursive(struct waiting *w)
{
	mutex_of(w, set_recursive);
}

static void set_pi(pthread_mutexattr_t *attributes)
{
	if (pthread_mutexattr_setprotocol(attributes, PTHREAD_PRIO_INHERIT))
		unready("no priority inheritance here");
}

static void mutex_pi(struct waiting *w)
{
	mutex_of(w, set_pi);
}

static void set_robust(pthread_mutexattr_t *attributes)
{
	pthread_mutexattr_setrobust(attributes, PTHREAD_MUTEX_ROBUST);
}

static void mutex_robust(struct waiting *w)
{
	mutex_of(w, set_robust);
}

static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;

static void condition_wait(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&mutex);
	for (;;)
		pthread_cond_wait(&condition, &mutex);
}

/* Nobody holds anything. */
static void condition_variable(struct waiting *w)
{
	w->nr = SYS_futex;
	w->run = condition_wait;
	strcpy(w->waits_on, "futex 0x*");
}

static struct subject joined;

static void join(void *unused)
{
	(void)unused;
	pthread_join(joined.thread, NULL);
}

static void pause_forever(void *unused)
{
	(void)unused;
	forever();
}

static void thread_join(struct waiting *w)
{
	subject_start(&joined, "joined", pause_forever, NULL);
	w->nr = SYS_futex;
	w->run = join;
	w->pid = getpid();
	snprintf(w->waits_on, sizeof(w->waits_on), "end of thread %d joined", joined.tid);
}

/* A word whose neighbours look like the owner of a mutex that does not exist: process 1. */
static void futex_hostile(struct waiting *w)
{
	static int words[5] = {2, 0, 1, 1, 0};

	w->nr = SYS_futex;
	w->arg[0] = (long)words;
	w->arg[1] = 128;
	w->arg[2] = 2;
	snprintf(w->waits_on, sizeof(w->waits_on), "futex %#lx", (long)words);
}

/* Whether this kernel shows how far the ring is (5.16). */
static bool ring_is_told(int fd)
{
	char path[64], text[4096];
	ssize_t length;
	int info;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	info = open(path, O_RDONLY | O_CLOEXEC);
	length = read(info, text, sizeof(text) - 1);
	close(info);
	text[length > 0 ? length : 0] = '\0';
	return strstr(text, "CachedSqHead:") != NULL;
}

/* Polls a pipe that nobody writes to, three times. */
static void uring(struct waiting *w)
{
	struct io_uring_params parameters = {0};
	long fd = syscall(SYS_io_uring_setup, 8, &parameters);
	struct io_uring_sqe *entries;
	char *ring;
	int fds[2];

	if (fd < 0)
		unready("no io_uring here");
	ring = mmap(NULL, parameters.sq_off.array + 8 * sizeof(uint32_t), PROT_READ | PROT_WRITE,
		    MAP_SHARED, (int)fd, IORING_OFF_SQ_RING);
	entries = mmap(NULL, 8 * sizeof(*entries), PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd,
		       IORING_OFF_SQES);
	if (ring == MAP_FAILED || entries == MAP_FAILED)
		die("map the ring");
	make_pipe(fds);
	for (uint32_t i = 0; i < 3; i++) {
		memset(&entries[i], 0, sizeof(entries[i]));
		entries[i].opcode = IORING_OP_POLL_ADD;
		entries[i].fd = fds[0];
		entries[i].poll_events = POLLIN;
		((uint32_t *)(ring + parameters.sq_off.array))[i] = i;
	}
	__atomic_store_n((uint32_t *)(ring + parameters.sq_off.tail), 3, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, fd, 3, 0, 0, NULL, 0) != 3)
		die("io_uring_enter");
	w->fd = (int)fd;
	w->nr = SYS_io_uring_enter;
	w->arg[0] = fd;
	w->arg[2] = 1;
	w->arg[3] = IORING_ENTER_GETEVENTS;
	w->inflight = ring_is_told((int)fd) ? 3 : -1;
	strcpy(w->waits_on, w->inflight < 0 ? "io_uring" : "io_uring 3 in flight");
	w->filetype = "io_uring";
}

/* One poll of a pipe, of which two are waited for. */
static void aio(struct waiting *w)
{
	static struct io_event events[4];
	struct iocb request = {.aio_lio_opcode = IOCB_CMD_POLL, .aio_buf = POLLIN};
	struct iocb *requests[] = {&request};
	aio_context_t context = 0;
	int fds[2];

	make_pipe(fds);
	request.aio_fildes = (uint32_t)fds[0];
	if (syscall(SYS_io_setup, 4, &context))
		unready("no libaio calls here");
	if (syscall(SYS_io_submit, context, 1, requests) != 1)
		unready("no polling by libaio here (4.18)");
	w->nr = SYS_io_getevents;
	w->arg[0] = (long)context;
	w->arg[1] = 1;
	w->arg[2] = 4;
	w->arg[3] = (long)events;
	strcpy(w->waits_on, "aio at least 1 in flight");
	w->inflight = 1;
}

static void file_lock(struct waiting *w)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/tsnap-test-%d.lock", option_text("dir", "/tmp"), getpid());
	w->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	w->pid = child_fork();
	if (!w->pid) {
		prctl(PR_SET_NAME, OTHER);
		if (flock(open(path, O_RDWR), LOCK_EX))
			die("flock");
		forever();
	}
	await_state(w->pid, w->pid, "S", NR_ANY);
	w->nr = SYS_flock;
	w->arg[0] = w->fd;
	w->arg[1] = LOCK_EX;
	snprintf(w->waits_on, sizeof(w->waits_on), "lock on %s held by %d " OTHER, path, w->pid);
}

static void semaphore(struct waiting *w)
{
	static struct sembuf take = {.sem_op = -1};
	int set = semget(IPC_PRIVATE, 1, 0600);

	if (set < 0)
		unready("no semaphores here");
	w->nr = SYS_semtimedop;
	w->arg[0] = set;
	w->arg[1] = (long)&take;
	w->arg[2] = 1;
	w->semaphores = set;
	snprintf(w->waits_on, sizeof(w->waits_on), "semaphores %d", set);
}

static void listen_to(void *data)
{
	char c;

	while (read(*(int *)data, &c, 1) == 1)
		;
}

/* Threads that each wait for their connection, and are served again and again. */
static void served_run(void)
{
	long threads = option_number("threads", 1000),
	     period_us = option_number("period_us", 30000);
	struct subject *subjects = calloc((size_t)threads, sizeof(*subjects));
	int *near = calloc((size_t)threads, sizeof(*near)),
	    *far = calloc((size_t)threads, sizeof(*far));
	struct sockaddr_in address;
	int listening = tcp_listen(&address), port;

	limits_raise();
	for (long i = 0; i < threads; i++) {
		near[i] = tcp_connect(&address, &port);
		far[i] = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
		if (far[i] < 0)
			die("accept");
		subject_start(&subjects[i], "served", listen_to, &near[i]);
	}
	if (!child_fork())
		for (;; sleep_ns(period_us * 1000))
			for (long i = 0; i < threads; i++)
				if (write(far[i], "", 1) != 1)
					die("write");
	ready_begin(getpid(), getpid());
	line_end();
	hold();
}

static struct sockaddr_in reconnect_address;

static void reconnect(void *listening)
{
	struct timeval brief = {.tv_usec = 2000};
	int port;

	for (;;) {
		int far = tcp_connect(&reconnect_address, &port),
		    near = accept4(*(int *)listening, NULL, NULL, SOCK_CLOEXEC);

		setsockopt(far, SOL_SOCKET, SO_RCVTIMEO, &brief, sizeof(brief));
		if (read(far, buffer, 1) > 0)
			die("nobody writes");
		/* reset, so that no port is used up by waiting for its last packets */
		setsockopt(far, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0},
			   sizeof(struct linger));
		close(far);
		close(near);
	}
}

/* Sockets that are gone when they are looked up. */
static void reconnect_run(void)
{
	static struct subject subjects[8];
	int listening = tcp_listen(&reconnect_address);

	for (size_t i = 0; i < 8; i++)
		subject_start(&subjects[i], "reconnect", reconnect, &listening);
	ready_begin(getpid(), getpid());
	line_end();
	hold();
}

/* A pipe between processes of which the other one has very many descriptors. */
static void pipe_many(struct waiting *w)
{
	int fds[2], nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

	limits_raise();
	make_pipe(fds);
	w->pid = child_fork();
	if (!w->pid) {
		prctl(PR_SET_NAME, OTHER);
		close(fds[0]);
		for (int i = 0; i < 10000; i++)
			if (dup(nothing) < 0)
				_exit(1);
		/* behind all of them */
		if (dup(fds[1]) < 0 || close(fds[1]))
			_exit(1);
		forever();
	}
	await_state(w->pid, w->pid, "S", NR_ANY);
	close(fds[1]);
	read_of(w, fds[0]);
	snprintf(w->waits_on, sizeof(w->waits_on), "pipe from %d " OTHER, w->pid);
}

static const struct {
	const char *name;
	void (*prepare)(struct waiting *w);
} rows[] = {
	{"tcp_client", tcp_client},
	{"tcp_server", tcp_server},
	{"tcp_accept", tcp_accept},
	{"tcp6_accept", tcp6_accept},
	{"udp", udp},
	{"netlink", netlink},
	{"unix_pair", unix_pair},
	{"unix_path", unix_path},
	{"pipe_reader", pipe_reader},
	{"pipe_writer", pipe_writer},
	{"pipe_own", pipe_own},
	{"pipe_many", pipe_many},
	{"fifo_open", fifo_open},
	{"fifo_open_relative", fifo_open_relative},
	{"fifo_reader", fifo_reader},
	{"eventfd", eventfd_reader},
	{"inotify", inotify_reader},
	{"timerfd", timerfd_reader},
	{"pidfd_poll", pidfd_poll},
	{"poll_two", poll_two},
	{"select_two", select_two},
	{"epoll_two", epoll_two},
	{"epoll_many", epoll_many},
	{"child", child},
	{"child_id", child_id},
	{"timer", timer},
	{"mutex", mutex_plain},
	{"mutex_recursive", mutex_recursive},
	{"mutex_pi", mutex_pi},
	{"mutex_robust", mutex_robust},
	{"condition", condition_variable},
	{"join", thread_join},
	{"futex_hostile", futex_hostile},
	{"io_uring", uring},
	{"aio", aio},
	{"file_lock", file_lock},
	{"semaphore", semaphore},
};
#define ROW_COUNT (sizeof(rows) / sizeof(rows[0]))

static void call_forever(void *data)
{
	const struct waiting *w = data;
	const long *a = w->arg;

	for (;;)
		syscall(w->nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static void waiting_run(size_t row)
{
	static struct waiting w = {.fd = -1, .inflight = -1, .semaphores = -1};
	struct subject subject;

	rows[row].prepare(&w);
	subject_start(&subject, rows[row].name, w.run ? w.run : call_forever, &w);
	await_state(getpid(), subject.tid, "S", w.nr);
	ready_begin(subject.tid, getpid());
	line_add("waits_on", "%s", w.waits_on);
	line_add("connection", "%s", w.connection);
	line_add("remote", "%s", w.remote);
	line_add("filetype", "%s", w.filetype ? w.filetype : "");
	if (w.pid)
		line_add("waits_on_pid", "%d", w.pid);
	if (w.inflight >= 0)
		line_add("inflight", "%ld", w.inflight);
	if (*w.file)
		line_add("file", "%s", w.file);
	line_end();
	hold();
	if (*w.file)
		unlink(w.file);
	if (w.semaphores >= 0)
		semctl(w.semaphores, 0, IPC_RMID);
}

static void wait_run(void)
{
	const char *name = option_text("on", "pipe_reader");

	for (size_t i = 0; i < ROW_COUNT; i++)
		if (!strcmp(rows[i].name, name))
			return waiting_run(i);
	unready("it knows nothing of that name to wait on");
}

static void wait_names_run(void)
{
	for (size_t i = 0; i < ROW_COUNT; i++)
		puts(rows[i].name);
}

const struct workload wait_workloads[] = {
	{"wait", "on=NAME dir=PATH", "a thread that waits for something (see wait_names)",
	 wait_run},
	{"served", "threads=N period_us=N", "threads that each wait for a TCP connection, often",
	 served_run},
	{"reconnect", "", "threads with connections that last 2 ms", reconnect_run},
	{"wait_names", "", "lists what wait can wait on", wait_names_run},
	{0},
};
