/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A client that waits in turn for each kind of end of a critical path: its server computes, sleeps,
 * writes to a disk, and waits for a mutex whose holder computes. Named path-client, path-server,
 * path-holder; the client is a process of its own. They communicate through a UNIX socket, or a TCP
 * connection of 127.0.0.1. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "workload.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t compute_ns, sleep_for_ns, hold_ns;
static int file = -1;
static int ends[2]; /* ends of the connection for requests and answers */

/* Uses CPU time: time used by others is not counted. */
static void compute(int64_t ns)
{
	int64_t until_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until_ns)
		;
}

static void holder_run(void *arg)
{
	(void)arg;
	for (;;) {
		pthread_mutex_lock(&lock);
		compute(hold_ns);
		pthread_mutex_unlock(&lock);
		sleep_ns(hold_ns / 4);
	}
}

static void server_run(void *arg)
{
	char block[4096], byte;

	(void)arg;
	memset(block, 'x', sizeof(block));
	while (read(ends[1], &byte, 1) == 1) {
		compute(compute_ns);
		sleep_ns(sleep_for_ns);
		if (file >= 0 && (pwrite(file, block, sizeof(block), 0) < 0 || fdatasync(file)))
			die("fdatasync");
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
		if (write(ends[1], &byte, 1) != 1)
			die("answer");
	}
}

static void client_run(void)
{
	char byte = 'q';

	prctl(PR_SET_NAME, "path-client");
	close(ends[1]);
	for (;;) {
		compute(compute_ns / 2);
		if (write(ends[0], &byte, 1) != 1 || read(ends[0], &byte, 1) != 1)
			_exit(0);
	}
}

static void path_run(void)
{
	static struct subject server, holder;
	const char *path = option_text("file", NULL);
	pid_t client;

	compute_ns = option_number("compute_ms", 6) * NS_PER_MS;
	sleep_for_ns = option_number("sleep_ms", 5) * NS_PER_MS;
	hold_ns = option_number("hold_ms", 8) * NS_PER_MS;
	if (path) {
		file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (file < 0)
			die(path);
		unlink(path);
	}
	if (option_number("tcp", 0))
		make_tcp(ends);
	else if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		die("socketpair");
	client = child_fork();
	if (!client)
		client_run();
	close(ends[0]);
	subject_start(&server, "path-server", server_run, NULL);
	subject_start(&holder, "path-holder", holder_run, NULL);
	ready_begin(server.tid, getpid());
	line_add("client", "%d", client);
	line_add("holder", "%d", holder.tid);
	line_end();
	hold();
}

const struct workload path_workloads[] = {
	{"path", "compute_ms=N sleep_ms=N hold_ms=N file=PATH tcp=1",
	 "a client whose waits end with CPU time, a timer, a disk and a mutex", path_run},
	{0},
};
