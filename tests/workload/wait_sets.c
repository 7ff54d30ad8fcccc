/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads that wait for one of several things. */
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "wait.h"

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
	strcpy(w->waits_on, "1 fd: eventfd count 0");
}

/* Makes a pipe that another process does not read, without room. Returns its end for writing. */
static int full_pipe(struct waiting *w)
{
	static char bytes[4096];
	int fds[2];

	make_pipe(fds);
	w->pid = other_start(fds[1]);
	close(fds[0]);
	fcntl(fds[1], F_SETFL, O_NONBLOCK);
	while (write(fds[1], bytes, sizeof(bytes)) > 0)
		;
	snprintf(w->waits_on, sizeof(w->waits_on), "1 fd: pipe to %d " OTHER, w->pid);
	return fds[1];
}

static void poll_room(struct waiting *w)
{
	static struct pollfd polled;

	polled = (struct pollfd){.fd = full_pipe(w), .events = POLLIN | POLLOUT};
	w->nr = SYS_ppoll;
	w->arg[0] = (long)&polled;
	w->arg[1] = 1;
}

static void select_room(struct waiting *w)
{
	static fd_set set;
	int fd = full_pipe(w);

	FD_ZERO(&set);
	FD_SET(fd, &set);
	w->nr = SYS_pselect6;
	w->arg[0] = fd + 1;
	w->arg[2] = (long)&set;
}

/* A set that also has a descriptor of its own. */
static void epoll_room(struct waiting *w)
{
	static struct epoll_event out;
	struct epoll_event event = {.events = EPOLLIN};
	int fd = full_pipe(w), set = epoll_create1(EPOLL_CLOEXEC);

	epoll_ctl(set, EPOLL_CTL_ADD, eventfd(0, EFD_CLOEXEC), &event);
	event.events = EPOLLIN | EPOLLOUT;
	epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
	w->nr = SYS_epoll_pwait;
	w->fd = set;
	w->arg[0] = set;
	w->arg[1] = (long)&out;
	w->arg[2] = 1;
	w->arg[3] = -1;
	snprintf(w->waits_on, sizeof(w->waits_on), "2 fds: eventfd count 0, pipe to %d " OTHER,
		 w->pid);
}

/* A queue of messages, which is a file. */
static void poll_queue(struct waiting *w)
{
	static struct pollfd polled;
	char name[64];

	snprintf(name, sizeof(name), "tsnap-test-%d", getpid());
	polled.fd = (int)syscall(SYS_mq_open, name, O_CREAT | O_RDWR | O_CLOEXEC, 0600, NULL);
	if (polled.fd < 0)
		unready("no POSIX message queues here");
	syscall(SYS_mq_unlink, name);
	polled.events = POLLIN;
	w->nr = SYS_ppoll;
	w->arg[0] = (long)&polled;
	w->arg[1] = 1;
	snprintf(w->waits_on, sizeof(w->waits_on), "1 fd: message queue /%s (deleted)", name);
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
	strcpy(w->waits_on, "1 fd: own pipe");
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
	strcpy(w->waits_on, "2 fds: 2x eventfd count 0");
}

static void epoll_many(struct waiting *w)
{
	epoll_of(w, 200);
	strcpy(w->waits_on, "200 fds");
}

/* True if this kernel shows the position of the ring (5.16). */
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

/* Makes three requests that differ only in what the caller sets. */
static void uring_of(struct waiting *w, const struct io_uring_sqe *request)
{
	struct io_uring_params parameters = {0};
	long fd = syscall(SYS_io_uring_setup, 8, &parameters);
	struct io_uring_sqe *entries;
	char *ring;

	if (fd < 0)
		unready("no io_uring here");
	ring = mmap(NULL, parameters.sq_off.array + 8 * sizeof(uint32_t), PROT_READ | PROT_WRITE,
		    MAP_SHARED, (int)fd, IORING_OFF_SQ_RING);
	entries = mmap(NULL, 8 * sizeof(*entries), PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd,
		       IORING_OFF_SQES);
	if (ring == MAP_FAILED || entries == MAP_FAILED)
		die("map the ring");
	for (uint32_t i = 0; i < 3; i++) {
		entries[i] = *request;
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

/* Polls a pipe that is never written to. */
static void uring(struct waiting *w)
{
	struct io_uring_sqe request = {.opcode = IORING_OP_POLL_ADD, .poll_events = POLLIN};
	int fds[2];

	make_pipe(fds);
	request.fd = fds[0];
	uring_of(w, &request);
}

/* The same, by the kernel's workers: threads of this process. */
static void uring_workers(struct waiting *w)
{
	struct io_uring_sqe request = {
		.opcode = IORING_OP_POLL_ADD, .flags = IOSQE_ASYNC, .poll_events = POLLIN};
	int fds[2];

	make_pipe(fds);
	request.fd = fds[0];
	uring_of(w, &request);
}

static void uring_timeout(struct waiting *w)
{
	static struct {
		int64_t s, ns;
	} ever = {100000, 0};
	struct io_uring_sqe request = {.opcode = IORING_OP_TIMEOUT, .fd = -1, .len = 1};

	request.addr = (uintptr_t)&ever;
	uring_of(w, &request);
}

/* Polls a pipe, and waits for at least one event. */
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

const struct wait_row set_waits[] = {
	{"pidfd_poll", pidfd_poll},
	{"poll_two", poll_two},
	{"poll_room", poll_room},
	{"poll_queue", poll_queue},
	{"select_room", select_room},
	{"epoll_room", epoll_room},
	{"select_two", select_two},
	{"epoll_two", epoll_two},
	{"epoll_many", epoll_many},
	{"io_uring", uring},
	{"io_uring_workers", uring_workers},
	{"io_uring_timeout", uring_timeout},
	{"aio", aio},
	{0},
};
