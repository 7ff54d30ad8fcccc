/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "workload.h"

#define NS_PER_S 1000000000ll
#define DESCRIPTORS_MOST 65536
#define AWAIT_S 60 /* long enough for a guest in software emulation */
#define CHILDREN_MAX 256

static pid_t children[CHILDREN_MAX];
static size_t child_count;

pid_t gettid_now(void)
{
	return (pid_t)syscall(SYS_gettid);
}

int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

void sleep_ns(int64_t ns)
{
	struct timespec time = {ns / NS_PER_S, ns % NS_PER_S};

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &time, &time) == EINTR)
		;
}

void make_pipe(int fds[2])
{
	if (pipe2(fds, O_CLOEXEC))
		die("pipe");
}

void make_tcp(int pair[2])
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	pair[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listening < 0 || bind(listening, (struct sockaddr *)&address, sizeof(address)) ||
	    listen(listening, 4) || getsockname(listening, (struct sockaddr *)&address, &size) ||
	    connect(pair[0], (struct sockaddr *)&address, sizeof(address)))
		unready("no TCP on the loopback device here");
	pair[1] = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
	close(listening);
}

void pin_thread(pid_t tid, long cpu)
{
	cpu_set_t set;

	if (cpu < 0)
		return;
	CPU_ZERO(&set);
	CPU_SET((size_t)cpu, &set);
	if (sched_setaffinity(tid, sizeof(set), &set))
		die("pin to a CPU");
}

long last_cpu(void)
{
	cpu_set_t set;
	long last = 0;

	if (sched_getaffinity(0, sizeof(set), &set))
		die("sched_getaffinity");
	for (long cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET((size_t)cpu, &set))
			last = cpu;
	return last;
}

static void *subject_main(void *arg)
{
	struct subject *subject = arg;
	void (*fn)(void *) = subject->fn;
	void *fn_arg = subject->arg;

	prctl(PR_SET_NAME, subject->name);
	__atomic_store_n(&subject->tid, gettid_now(), __ATOMIC_RELEASE);
	fn(fn_arg);
	return NULL;
}

void subject_start(struct subject *subject, const char *name, void (*fn)(void *), void *arg)
{
	*subject = (struct subject){.name = name, .fn = fn, .arg = arg};
	errno = pthread_create(&subject->thread, NULL, subject_main, subject);
	if (errno)
		die("pthread_create");
	while (!__atomic_load_n(&subject->tid, __ATOMIC_ACQUIRE))
		sleep_ns(100000);
}

pid_t child_fork(void)
{
	pid_t pid;

	if (child_count == CHILDREN_MAX)
		die("too many children");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		child_count = 0;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	} else {
		children[child_count++] = pid;
	}
	return pid;
}

static void children_end(void)
{
	for (size_t i = 0; i < child_count; i++)
		kill(children[i], SIGKILL);
	for (size_t i = 0; i < child_count; i++)
		waitpid(children[i], NULL, 0);
	child_count = 0;
}

static void file_read(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	text[n > 0 ? n : 0] = 0;
	if (fd >= 0)
		close(fd);
}

static bool state_matches(pid_t pid, pid_t tid, const char *letters, long nr)
{
	char path[64], text[512], *after;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	file_read(path, text, sizeof(text));
	after = strrchr(text, ')');
	if (!after || !after[1] || !after[2] || !strchr(letters, after[2]))
		return false;
	if (nr == NR_ANY)
		return true;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid, tid);
	file_read(path, text, sizeof(text));
	return (text[0] == '-' || (text[0] >= '0' && text[0] <= '9')) && atol(text) == nr;
}

void await_state(pid_t pid, pid_t tid, const char *letters, long nr)
{
	int64_t deadline_ns = clock_ns(CLOCK_MONOTONIC) + AWAIT_S * NS_PER_S;

	while (!state_matches(pid, tid, letters, nr)) {
		if (clock_ns(CLOCK_MONOTONIC) > deadline_ns) {
			errno = ETIMEDOUT;
			die("the state is not reached");
		}
		sleep_ns(1000000);
	}
}

static void worker_main(void *data)
{
	struct worker *worker = data;
	char c;

	while (read(worker->go[0], &c, 1) == 1) {
		worker->work(worker->data);
		if (write(worker->end[1], "", 1) != 1)
			die("write");
	}
}

void worker_start(struct worker *worker, const char *name, void (*work)(void *), void *data)
{
	worker->work = work;
	worker->data = data;
	make_pipe(worker->go);
	make_pipe(worker->end);
	subject_start(&worker->subject, name, worker_main, worker);
	await_state(getpid(), worker->subject.tid, "S", SYS_read);
}

void worker_go(struct worker *worker)
{
	if (write(worker->go[1], "", 1) != 1)
		die("write");
}

void worker_await(struct worker *worker)
{
	char c;

	if (read(worker->end[0], &c, 1) != 1)
		die("read");
	await_state(getpid(), worker->subject.tid, "S", SYS_read);
}

void limits_raise(void)
{
	struct rlimit limit = {RLIM_INFINITY, RLIM_INFINITY};

	setrlimit(RLIMIT_NPROC, &limit);
	if (!getrlimit(RLIMIT_NOFILE, &limit)) {
		if (limit.rlim_max < DESCRIPTORS_MOST) /* 4096 without systemd */
			limit.rlim_max = DESCRIPTORS_MOST;
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

bool hold_line(char *text, size_t size)
{
	static int64_t deadline_ns = -1;
	long seconds = option_number("seconds", 0);
	size_t length = 0;

	if (deadline_ns < 0)
		deadline_ns = clock_ns(CLOCK_MONOTONIC) + seconds * NS_PER_S;
	for (;;) {
		struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
		int64_t left_ns = deadline_ns - clock_ns(CLOCK_MONOTONIC);
		char c;

		if (seconds && left_ns <= 0)
			return false;
		if (poll(&in, 1, seconds ? (int)(left_ns / 1000000 + 1) : -1) <= 0)
			continue;
		if (read(STDIN_FILENO, &c, 1) <= 0)
			return false;
		if (c == '\n') {
			text[length] = 0;
			return true;
		}
		if (length + 1 < size)
			text[length++] = c;
	}
}

void hold(void)
{
	char text[64];

	while (hold_line(text, sizeof(text)))
		;
	children_end();
}
