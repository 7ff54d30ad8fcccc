/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Repeats one operation for a while and prints what one of them took, in nanoseconds.
 *
 * operations NAME MILLISECONDS: the caller runs it with and without tsnap and compares. It works in
 * batches of less than a millisecond; a quarter of them were faster than what it tells. What a tool
 * adds to the operation is in every batch; what other programs took from the CPU is not.
 */
#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000ll
#define NS_PER_MS 1000000ll
#define BATCHES_MAX 100000

static void die(const char *what)
{
	fprintf(stderr, "operations: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* number: 0 the first CPU that we may use, 1 the second. */
static void pin_cpu(int number)
{
	cpu_set_t allowed, one;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		die("sched_getaffinity");
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &allowed) && number-- == 0)
			CPU_SET(cpu, &one);
	if (!CPU_COUNT(&one)) {
		fprintf(stderr, "operations: too few CPUs\n");
		exit(77);
	}
	if (sched_setaffinity(0, sizeof(one), &one))
		die("sched_setaffinity");
}

static void system_calls(long count)
{
	for (long i = 0; i < count; i++)
		syscall(SYS_getppid);
}

static int to_peer, from_peer;

static void round_trips(long count)
{
	char ball = 0;

	for (long i = 0; i < count; i++)
		if (write(to_peer, &ball, 1) != 1 || read(from_peer, &ball, 1) != 1)
			die("round trip");
}

static void processes(long count)
{
	for (long i = 0; i < count; i++) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		if (pid < 0 || waitpid(pid, NULL, 0) != pid)
			die("fork");
	}
}

/* The peer ends when our end of its pipe is closed, whatever becomes of us. */
static void peer_start(int cpu)
{
	int there[2], back[2];
	char ball;

	if (pipe(there) || pipe(back))
		die("pipe");
	switch (fork()) {
	case -1:
		die("fork");
	case 0:
		break;
	default:
		close(there[0]);
		close(back[1]);
		to_peer = there[1];
		from_peer = back[0];
		return;
	}
	pin_cpu(cpu);
	close(there[1]);
	close(back[0]);
	while (read(there[0], &ball, 1) == 1 && write(back[1], &ball, 1) == 1)
		;
	_exit(0);
}

struct operation {
	const char *name;
	void (*repeat)(long count);
	long batch;   /* between two looks at the clock */
	int peer_cpu; /* -1: none */
};

/* clang-format off */
static const struct operation operations[] = {
	{"syscall",    system_calls, 2000, -1},
	{"pipe_same",  round_trips,  50,     0},
	{"pipe_cross", round_trips,  50,     1},
	{"fork",       processes,    5,     -1},
};
/* clang-format on */
#define OPERATION_COUNT (sizeof(operations) / sizeof(operations[0]))

static int64_t batch_ns(const struct operation *operation)
{
	int64_t start_ns = now_ns();

	operation->repeat(operation->batch);
	return now_ns() - start_ns;
}

static int order(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return (left > right) - (left < right);
}

static double measure(const struct operation *operation, int64_t length_ns)
{
	static int64_t batches[BATCHES_MAX];
	int64_t end_ns;
	size_t count = 0;

	if (operation->peer_cpu >= 0)
		peer_start(operation->peer_cpu); /* before we are pinned: it inherits our CPUs */
	pin_cpu(0);
	operation->repeat(operation->batch);
	end_ns = now_ns() + length_ns;
	do
		batches[count++] = batch_ns(operation);
	while (now_ns() < end_ns && count < BATCHES_MAX);
	qsort(batches, count, sizeof(batches[0]), order);
	return (double)batches[count / 4] / (double)operation->batch;
}

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 3 && i < OPERATION_COUNT; i++)
		if (!strcmp(operations[i].name, argv[1])) {
			printf("%.1f\n", measure(&operations[i], atol(argv[2]) * NS_PER_MS));
			return 0;
		}
	fprintf(stderr, "usage: operations NAME MILLISECONDS\n");
	return 2;
}
