/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Many chains at a time: clients that each wait for an answer of their server's thread, which waits
 * for a mutex of ten such threads, whose holder naps. Every thread sleeps nearly always, and each
 * wait ends after some naps. */
#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "workload.h"

#define GROUP 10	  /* pairs that share a mutex */
#define PROCESS_PAIRS 100 /* pairs of two processes, clients and servers; multiple of GROUP */

struct pair {
	int ends[2]; /* ends of a TCP connection: the client's, the server's */
	pthread_mutex_t *mutex;
};

static struct pair *pairs;
static pthread_mutex_t *mutexes; /* zeroed mutexes are unlocked */
static int64_t nap_ns;

static void *serve(void *data)
{
	struct pair *pair = data;
	char byte;

	while (read(pair->ends[1], &byte, 1) == 1) {
		pthread_mutex_lock(pair->mutex);
		sleep_ns(nap_ns);
		pthread_mutex_unlock(pair->mutex);
		if (write(pair->ends[1], &byte, 1) != 1)
			break;
	}
	return NULL;
}

static void *request(void *data)
{
	struct pair *pair = data;
	char byte = 'q';

	while (write(pair->ends[0], &byte, 1) == 1 && read(pair->ends[0], &byte, 1) == 1)
		;
	return NULL;
}

/* Starts a process with the threads of the pairs from `first` on; its first thread is that of the
 * first pair. */
static pid_t side_start(const char *name, void *(*run)(void *), long first, long count, int own)
{
	pid_t pid = child_fork();
	pthread_attr_t attr;
	pthread_t thread;

	if (pid)
		return pid;
	prctl(PR_SET_NAME, name);
	for (long i = first; i < first + count; i++)
		close(pairs[i].ends[!own]);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 << 10);
	for (long i = first + 1; i < first + count; i++) {
		errno = pthread_create(&thread, &attr, run, &pairs[i]);
		if (errno)
			die("pthread_create");
	}
	run(&pairs[first]);
	_exit(0);
}

static void processes_start(long first, long count)
{
	for (long i = first; i < first + count; i++) {
		make_tcp(pairs[i].ends);
		pairs[i].mutex = &mutexes[i / GROUP];
	}
	side_start("chained-server", serve, first, count, 1);
	side_start("chained-client", request, first, count, 0);
	for (long i = first; i < first + count; i++) {
		close(pairs[i].ends[0]);
		close(pairs[i].ends[1]);
	}
}

static void chained_run(void)
{
	long count = (option_number("threads", 1000) + 1) / 2;

	limits_raise();
	nap_ns = option_number("nap_ms", 100) * NS_PER_MS;
	pairs = calloc((size_t)count, sizeof(*pairs));
	mutexes = calloc((size_t)count / GROUP + 1, sizeof(*mutexes));
	if (!pairs || !mutexes)
		die("calloc");
	for (long first = 0; first < count; first += PROCESS_PAIRS)
		processes_start(first,
				count - first < PROCESS_PAIRS ? count - first : PROCESS_PAIRS);
	ready_begin(getpid(), getpid());
	line_add("threads", "%ld", 2 * count);
	line_end();
	hold();
}

const struct workload chained_workloads[] = {
	{"chained", "threads=N nap_ms=N",
	 "clients that wait for threads of servers, which wait for mutexes", chained_run},
	{0},
};
