/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A server's thread that serves pieces of work of known length and content. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "workload.h"

#define BLOCK_BYTES 4096

enum idle { IDLE_EPOLL, IDLE_ACCEPT, IDLE_FUTEX };

struct pieces;

/* What slow pieces are slow by. */
struct slowness {
	const char *name;
	void (*prepare)(struct pieces *pieces);
	void (*slow)(struct pieces *pieces);
	void (*help)(struct pieces *pieces); /* by another thread, each time */
};

struct pieces {
	enum idle idle;
	const struct slowness *slowness;
	struct subject helper;
	pthread_mutex_t held;
	int to_helper[2], from_helper[2]; /* pipes, or ends of a connection */
	int64_t slow_ns;		  /* that slow pieces waited longer, but not for a CPU */
	long pieces, cpu_ms, nap_ms, reads, slow_every, slow_ms, slow_mb, gap_ms;
	const char *file;
	struct subject server;
	int epoll, event, listener, disk;
	struct sockaddr_un address;
	socklen_t address_bytes;
	void *block;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	long asked, served; /* pieces, under mutex */
	bool counts;
	int64_t *took_ns;
	int64_t cpu_ns, disk_ns, nap_ns;
};

static void burn_ns(int64_t ns)
{
	int64_t end_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns)
		;
}

static void idle_wait(struct pieces *pieces)
{
	struct epoll_event event;
	uint64_t count;
	int fd;

	switch (pieces->idle) {
	case IDLE_EPOLL:
		while (epoll_wait(pieces->epoll, &event, 1, -1) != 1)
			if (errno != EINTR)
				die("epoll_wait");
		if (read(pieces->event, &count, sizeof(count)) != sizeof(count))
			die("read of the eventfd");
		break;
	case IDLE_ACCEPT:
		fd = accept(pieces->listener, NULL, NULL);
		if (fd < 0)
			die("accept");
		close(fd);
		break;
	case IDLE_FUTEX:
		pthread_mutex_lock(&pieces->mutex);
		while (pieces->asked == pieces->served)
			pthread_cond_wait(&pieces->cond, &pieces->mutex);
		pthread_mutex_unlock(&pieces->mutex);
		break;
	}
}

static void byte_write(int fd)
{
	if (write(fd, "", 1) != 1)
		die("write");
}

static void byte_read(int fd)
{
	char byte;

	if (read(fd, &byte, 1) != 1)
		die("read");
}

static void helpers_pipes(struct pieces *pieces)
{
	pthread_mutex_init(&pieces->held, NULL);
	make_pipe(pieces->to_helper);
	make_pipe(pieces->from_helper);
}

static void slow_nap(struct pieces *pieces)
{
	sleep_ns(pieces->slow_ms * NS_PER_MS);
}

static void slow_cpu(struct pieces *pieces)
{
	burn_ns(pieces->slow_ms * NS_PER_MS);
}

static void slow_lock(struct pieces *pieces)
{
	byte_write(pieces->to_helper[1]);
	byte_read(pieces->from_helper[0]);
	pthread_mutex_lock(&pieces->held);
	pthread_mutex_unlock(&pieces->held);
}

static void help_lock(struct pieces *pieces)
{
	pthread_mutex_lock(&pieces->held);
	byte_write(pieces->from_helper[1]);
	slow_nap(pieces);
	pthread_mutex_unlock(&pieces->held);
}

/* The server's end of a connection is to_helper[1] and from_helper[0]. */
static void upstream_open(struct pieces *pieces)
{
	struct sockaddr_in address = {.sin_family = AF_INET,
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t bytes = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0), near = socket(AF_INET, SOCK_STREAM, 0);

	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&address, &bytes) ||
	    connect(near, (struct sockaddr *)&address, sizeof(address)))
		die("connect");
	pieces->to_helper[1] = pieces->from_helper[0] = near;
	pieces->to_helper[0] = pieces->from_helper[1] = accept(listener, NULL, NULL);
}

static void slow_upstream(struct pieces *pieces)
{
	byte_write(pieces->to_helper[1]);
	byte_read(pieces->from_helper[0]);
}

static void help_upstream(struct pieces *pieces)
{
	slow_nap(pieces);
	byte_write(pieces->from_helper[1]);
}

static void disk_open(struct pieces *pieces)
{
	pieces->disk = open(pieces->file, O_RDONLY | O_DIRECT);
	if (pieces->disk < 0)
		unready("the file can't be opened with O_DIRECT");
	if (posix_memalign(&pieces->block, BLOCK_BYTES, BLOCK_BYTES))
		die("memory");
}

static void block_read(struct pieces *pieces)
{
	if (pread(pieces->disk, pieces->block, BLOCK_BYTES, 0) < 0)
		die("pread");
}

static void slow_disk(struct pieces *pieces)
{
	int64_t end_ns = clock_ns(CLOCK_MONOTONIC) + pieces->slow_ms * NS_PER_MS;

	while (clock_ns(CLOCK_MONOTONIC) < end_ns)
		block_read(pieces);
}

/* Whoever has set a limit for the process's memory decides how long it takes. */
static void slow_memory(struct pieces *pieces)
{
	size_t bytes = (size_t)pieces->slow_mb << 20;
	char *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		die("mmap");
	memset(memory, 1, bytes);
	munmap(memory, bytes);
}

static const struct slowness slownesses[] = {
	{"nap", NULL, slow_nap, NULL},
	{"cpu", NULL, slow_cpu, NULL},
	{"lock", helpers_pipes, slow_lock, help_lock},
	{"upstream", upstream_open, slow_upstream, help_upstream},
	{"disk", disk_open, slow_disk, NULL},
	{"memory", NULL, slow_memory, NULL},
};

static void helper_run(void *data)
{
	struct pieces *pieces = data;

	for (;;) {
		byte_read(pieces->to_helper[0]);
		pieces->slowness->help(pieces);
	}
}

static void slowness_open(struct pieces *pieces)
{
	const char *name = option_text("slow_in", "nap");

	for (size_t i = 0; i < sizeof(slownesses) / sizeof(*slownesses); i++)
		if (!strcmp(slownesses[i].name, name))
			pieces->slowness = &slownesses[i];
	if (!pieces->slowness)
		die("slow_in");
	if (pieces->slowness->prepare)
		pieces->slowness->prepare(pieces);
	if (pieces->slowness->help)
		subject_start(&pieces->helper, "helper", helper_run, pieces);
}

/* The time that this thread neither had a CPU nor waited for one. */
static int64_t waited_ns(void)
{
	long long cpu_ns = 0, queue_ns = 0;
	FILE *file = fopen("/proc/thread-self/schedstat", "re");

	if (!file || fscanf(file, "%lld %lld", &cpu_ns, &queue_ns) != 2)
		die("schedstat");
	fclose(file);
	return clock_ns(CLOCK_MONOTONIC) - cpu_ns - queue_ns;
}

/* Does a piece; index: among those that count, -1: it does not. */
static void piece_do(struct pieces *pieces, long index)
{
	int64_t begun_ns = clock_ns(CLOCK_MONOTONIC), cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	int64_t at_ns;
	bool slow = pieces->slow_every && index >= 0 &&
		    index % pieces->slow_every == pieces->slow_every - 1;

	burn_ns(pieces->cpu_ms * NS_PER_MS);
	at_ns = clock_ns(CLOCK_MONOTONIC);
	if (slow) {
		int64_t before_ns = waited_ns();

		pieces->slowness->slow(pieces);
		pieces->slow_ns += waited_ns() - before_ns;
	}
	if (pieces->nap_ms)
		sleep_ns(pieces->nap_ms * NS_PER_MS);
	pieces->nap_ns += index < 0 ? 0 : clock_ns(CLOCK_MONOTONIC) - at_ns;
	at_ns = clock_ns(CLOCK_MONOTONIC);
	for (long i = 0; i < pieces->reads; i++)
		block_read(pieces);
	if (index < 0)
		return;
	pieces->disk_ns += clock_ns(CLOCK_MONOTONIC) - at_ns;
	pieces->cpu_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns;
	pieces->took_ns[index] = clock_ns(CLOCK_MONOTONIC) - begun_ns;
}

static void serve(void *arg)
{
	struct pieces *pieces = arg;
	long index = 0;

	for (;;) {
		idle_wait(pieces);
		piece_do(pieces, pieces->counts ? index++ : -1);
		pthread_mutex_lock(&pieces->mutex);
		pieces->served++;
		pthread_mutex_unlock(&pieces->mutex);
	}
}

/* Has a piece begin, and returns when the thread is idle again. */
static void piece_ask(struct pieces *pieces)
{
#ifndef SYS_epoll_wait /* arm64 */
#define SYS_epoll_wait SYS_epoll_pwait
#endif
	static const long calls[] = {[IDLE_EPOLL] = SYS_epoll_wait,
				     [IDLE_ACCEPT] = SYS_accept,
				     [IDLE_FUTEX] = SYS_futex};
	uint64_t one = 1;
	long served;
	int fd;

	pthread_mutex_lock(&pieces->mutex);
	pieces->asked++;
	if (pieces->idle == IDLE_FUTEX)
		pthread_cond_signal(&pieces->cond);
	pthread_mutex_unlock(&pieces->mutex);
	if (pieces->idle == IDLE_EPOLL && write(pieces->event, &one, sizeof(one)) != sizeof(one))
		die("write to the eventfd");
	if (pieces->idle == IDLE_ACCEPT) {
		fd = socket(AF_UNIX, SOCK_STREAM, 0);
		if (connect(fd, (struct sockaddr *)&pieces->address, pieces->address_bytes))
			die("connect");
		close(fd);
	}
	do {
		sleep_ns(NS_PER_MS);
		pthread_mutex_lock(&pieces->mutex);
		served = pieces->served;
		pthread_mutex_unlock(&pieces->mutex);
	} while (served < pieces->asked);
	await_state(getpid(), pieces->server.tid, "S", calls[pieces->idle]);
}

static void idle_open(struct pieces *pieces)
{
	struct epoll_event event = {.events = EPOLLIN};

	pieces->event = eventfd(0, 0);
	pieces->epoll = epoll_create1(0);
	if (pieces->event < 0 || pieces->epoll < 0 ||
	    epoll_ctl(pieces->epoll, EPOLL_CTL_ADD, pieces->event, &event))
		die("epoll");
	pieces->listener = socket(AF_UNIX, SOCK_STREAM, 0);
	pieces->address.sun_family = AF_UNIX;
	pieces->address_bytes = sizeof(pieces->address);
	/* the kernel chooses a name */
	if (bind(pieces->listener, (struct sockaddr *)&pieces->address,
		 sizeof(pieces->address.sun_family)) ||
	    listen(pieces->listener, 4) ||
	    getsockname(pieces->listener, (struct sockaddr *)&pieces->address,
			&pieces->address_bytes))
		die("listen");
	if (pieces->reads)
		disk_open(pieces);
}

static int ns_compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static void pieces_tell(struct pieces *pieces)
{
	int64_t sum_ns = 0;

	for (long i = 0; i < pieces->pieces; i++)
		sum_ns += pieces->took_ns[i];
	qsort(pieces->took_ns, (size_t)pieces->pieces, sizeof(*pieces->took_ns), ns_compare);
	line_begin("done");
	line_add("sum_ns", "%lld", (long long)sum_ns);
	line_add("cpu_ns", "%lld", (long long)pieces->cpu_ns);
	line_add("nap_ns", "%lld", (long long)pieces->nap_ns);
	line_add("slow_ns", "%lld", (long long)pieces->slow_ns);
	line_add("disk_ns", "%lld", (long long)pieces->disk_ns);
	line_add("p50_ns", "%lld", (long long)pieces->took_ns[(pieces->pieces - 1) / 2]);
	line_add("p99_ns", "%lld",
		 (long long)pieces->took_ns[(pieces->pieces * 99 + 99) / 100 - 1]);
	line_add("max_ns", "%lld", (long long)pieces->took_ns[pieces->pieces - 1]);
	line_end();
}

static void pieces_run(void)
{
	const char *idle = option_text("idle", "epoll");
	struct pieces pieces = {
		.idle = !strcmp(idle, "accept")	 ? IDLE_ACCEPT
			: !strcmp(idle, "futex") ? IDLE_FUTEX
						 : IDLE_EPOLL,
		.pieces = option_number("pieces", 100),
		.cpu_ms = option_number("cpu_ms", 3),
		.nap_ms = option_number("nap_ms", 0),
		.reads = option_number("reads", 0),
		.slow_every = option_number("slow_every", 0),
		.slow_ms = option_number("slow_ms", 0),
		.slow_mb = option_number("slow_mb", 0),
		.gap_ms = option_number("gap_ms", 5),
		.file = option_text("file", "/"),
	};
	char text[64];

	pthread_mutex_init(&pieces.mutex, NULL);
	pthread_cond_init(&pieces.cond, NULL);
	idle_open(&pieces);
	slowness_open(&pieces);
	pieces.took_ns = calloc((size_t)pieces.pieces, sizeof(*pieces.took_ns));
	if (!pieces.took_ns)
		die("memory");
	subject_start(&pieces.server, "pieces", serve, &pieces);
	ready_begin(pieces.server.tid, getpid());
	line_end();
	/* the word "go" is for the pieces that count, any other for one that does not */
	while (hold_line(text, sizeof(text))) {
		pieces.counts = !strncmp(text, "go", 2);
		for (long i = 0; i < (pieces.counts ? pieces.pieces : 1); i++) {
			piece_ask(&pieces);
			sleep_ns(pieces.gap_ms * NS_PER_MS);
		}
		pieces_tell(&pieces);
	}
}

const struct workload piece_workloads[] = {
	{"pieces",
	 "idle=epoll|accept|futex pieces=N cpu_ms=N nap_ms=N reads=N file=PATH slow_every=N "
	 "slow_ms=N slow_in=nap|cpu|lock|upstream|disk|memory slow_mb=N gap_ms=N",
	 "for the line go: so many pieces of work, idle between them; for any other: one",
	 pieces_run},
	{0},
};
