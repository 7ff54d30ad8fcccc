/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads that wait for each other in known chains. The ready line has in `victims`, a line each:
 * the waiting thread, the thread that it waits for, and the chain in tsnap's words, as a pattern of
 * fnmatch; in `pids` the processes. */
#include <fcntl.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "chain.h"

static char victims[16384], pids[256];

void victim_add(pid_t tid, pid_t blocker, const char *format, ...)
{
	char chain[512], *end = victims + strlen(victims);
	va_list ap;

	va_start(ap, format);
	vsnprintf(chain, sizeof(chain), format, ap);
	va_end(ap);
	snprintf(end, sizeof(victims) - (size_t)(end - victims), "%d:%d:%s\n", tid, blocker, chain);
}

void pid_add(pid_t pid)
{
	char *end = pids + strlen(pids);

	snprintf(end, sizeof(pids) - (size_t)(end - pids), "%s%d", *pids ? "," : "", pid);
}

/* --- processes */

#define FDS_MAX 64

pid_t part_start(const struct part *part)
{
	pid_t pid = child_fork();

	if (pid) {
		pid_add(pid);
		return pid;
	}
	prctl(PR_SET_NAME, part->name);
	for (int fd = STDERR_FILENO + 1; fd < FDS_MAX; fd++)
		if (fd != part->in && fd != part->out)
			close(fd);
	part->run(part);
	stay();
	return 0;
}

static void pass_on(const struct part *part)
{
	char block[4096] = {0};

	for (;;) {
		if (part->in >= 0 && read(part->in, block, sizeof(block)) <= 0)
			stay();
		if (!strcmp(part->name, "chain_p3"))
			sleep_ns(NAP_NS);
		if (part->out >= 0 && write(part->out, block, sizeof(block)) <= 0)
			stay();
	}
}

/* A pipeline: before the slow process pipes are full, after it one is empty. */
static void pipeline(void)
{
	int a[2], b[2], c[2];
	pid_t first, second, slow, last;

	make_pipe(a);
	make_pipe(b);
	make_pipe(c);
	first = part_start(&(struct part){"chain_p1", pass_on, -1, a[1]});
	second = part_start(&(struct part){"chain_p2", pass_on, a[0], b[1]});
	slow = part_start(&(struct part){"chain_p3", pass_on, b[0], c[1]});
	last = part_start(&(struct part){"chain_p4", pass_on, c[0], -1});
	for (int i = 0; i < 2; i++) {
		close(a[i]);
		close(b[i]);
		close(c[i]);
	}
	await_state(first, first, "S", SYS_write);
	await_state(second, second, "S", SYS_write);
	victim_add(first, second, "chain_p1 pipe> chain_p2 pipe> chain_p3");
	victim_add(second, slow, "chain_p2 pipe> chain_p3");
	victim_add(last, slow, "chain_p4 pipe> chain_p3");
}

void lock_file(const char *name, char path[256])
{
	snprintf(path, 256, "%s/%s-%d", option_text("dir", "/tmp"), name, getpid());
}

char locked_path[2][256];

static int flock_take(int which)
{
	int fd = open(locked_path[which], O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || flock(fd, LOCK_EX))
		die("flock");
	return fd;
}

static void flock_hold(const struct part *part)
{
	(void)part;
	flock_take(0);
	raise(SIGSTOP);
}

static void flock_write(const struct part *part)
{
	flock_take(0);
	if (write(part->out, "", 1) < 0)
		stay();
}

static void read_all(const struct part *part)
{
	char c;

	while (read(part->in, &c, 1) > 0)
		;
}

static void flock_stopped(void)
{
	pid_t reader, writer, holder;
	int ends[2];

	lock_file("chain", locked_path[0]);
	make_pipe(ends);
	holder = part_start(&(struct part){"chain_stopped", flock_hold, -1, -1});
	await_state(holder, holder, "T", NR_ANY);
	writer = part_start(&(struct part){"chain_writer", flock_write, -1, ends[1]});
	reader = part_start(&(struct part){"chain_reader", read_all, ends[0], -1});
	close(ends[0]);
	close(ends[1]);
	await_state(writer, writer, "S", SYS_flock);
	await_state(reader, reader, "S", SYS_read);
	victim_add(reader, writer, "chain_reader pipe> chain_writer file lock> chain_stopped");
	victim_add(writer, holder, "chain_writer file lock> chain_stopped");
}

static void flock_both(const struct part *part)
{
	bool first = !strcmp(part->name, "chain_lock_a");

	flock_take(first ? 0 : 1);
	sleep_ns(300 * NS_PER_MS);
	flock_take(first ? 1 : 0);
}

static void deadlock_flock(void)
{
	pid_t a, b;

	lock_file("chain-a", locked_path[0]);
	lock_file("chain-b", locked_path[1]);
	a = part_start(&(struct part){"chain_lock_a", flock_both, -1, -1});
	b = part_start(&(struct part){"chain_lock_b", flock_both, -1, -1});
	await_state(a, a, "S", SYS_flock);
	await_state(b, b, "S", SYS_flock);
	victim_add(a, b, "chain_lock_a file lock> chain_lock_b file lock> chain_lock_a DEADLOCK");
	victim_add(b, a, "chain_lock_b file lock> chain_lock_a file lock> chain_lock_b DEADLOCK");
}

/* --- sockets */

static void unix_pair(int pair[2])
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		die("socketpair");
}

void part_request(const struct part *part)
{
	char c = 0;

	while (write(part->out, &c, 1) == 1 && read(part->out, &c, 1) == 1)
		;
}

void part_forward(const struct part *part)
{
	char c;

	while (read(part->in, &c, 1) == 1 && write(part->out, &c, 1) == 1 &&
	       read(part->out, &c, 1) == 1 && write(part->in, &c, 1) == 1)
		;
}

void part_answer(const struct part *part)
{
	char c;

	while (read(part->in, &c, 1) == 1) {
		sleep_ns(5 * NAP_NS);
		if (write(part->in, &c, 1) != 1)
			break;
	}
}

static void proxy(void (*pair)(int ends[2]))
{
	int near[2], far[2];
	pid_t client, middle, server;

	pair(near);
	pair(far);
	client = part_start(&(struct part){"chain_client", part_request, -1, near[0]});
	middle = part_start(&(struct part){"chain_proxy", part_forward, near[1], far[0]});
	server = part_start(&(struct part){"chain_server", part_answer, far[1], -1});
	for (int i = 0; i < 2; i++) {
		close(near[i]);
		close(far[i]);
	}
	await_state(middle, middle, "S", SYS_read);
	victim_add(client, middle, "chain_client socket> chain_proxy socket> chain_server");
	victim_add(middle, server, "chain_proxy socket> chain_server");
}

static void proxy_tcp(void)
{
	proxy(make_tcp);
}

static void proxy_unix(void)
{
	proxy(unix_pair);
}

/* A connection whose other end no process here has: like one to another host. */
static void outside(void)
{
	struct sockaddr_in near = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)},
			   far = {.sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1),
				  .sin_port = htons(9)};
	int on = TCP_REPAIR_ON, off = TCP_REPAIR_OFF_NO_WP;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	pid_t client;

	if (setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &on, sizeof(on)) ||
	    bind(fd, (struct sockaddr *)&near, sizeof(near)) ||
	    connect(fd, (struct sockaddr *)&far, sizeof(far)) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &off, sizeof(off)))
		unready("no TCP_REPAIR here");
	client = part_start(&(struct part){"chain_client", read_all, fd, -1});
	close(fd);
	await_state(client, client, "S", SYS_read);
	victim_add(client, 0, "chain_client");
}

#define CONNECTIONS 4

static int connections[CONNECTIONS];

static void connection_serve(void *which)
{
	part_answer(&(struct part){"", NULL, connections[(long)which], -1});
}

/* Starts a thread for each connection. */
static void server_threads(void)
{
	static struct subject threads[CONNECTIONS];
	static const char *const names[] = {"chain_conn0", "chain_conn1", "chain_conn2",
					    "chain_conn3"};
	pid_t client;
	int pair[2];

	for (long i = 0; i < CONNECTIONS; i++) {
		make_tcp(pair);
		connections[i] = pair[1];
		client = part_start(&(struct part){"chain_client", part_request, -1, pair[0]});
		close(pair[0]);
		subject_start(&threads[i], names[i], connection_serve, (void *)i);
		victim_add(client, threads[i].tid, "chain_client socket> %s", names[i]);
	}
	pid_add(getpid());
	sleep_ns(10 * NAP_NS);
}

/* A server with a thread for each connection, each of which sends a request to a process by a pipe
 * while it holds a mutex: only the holder is in a call, on a descriptor that does not show its
 * client. */
#define ASKING 5

static pthread_mutex_t requested; /* a zeroed mutex is unlocked */
static int requests[2], answers[2];

static void helper_run(const struct part *part)
{
	char c;

	while (read(part->in, &c, 1) == 1) {
		sleep_ns(3 * NAP_NS);
		if (write(part->out, &c, 1) != 1)
			break;
	}
}

static void connection_ask(void *fd)
{
	int connection = (int)(long)fd;
	char c;

	while (read(connection, &c, 1) == 1) {
		pthread_mutex_lock(&requested);
		if (write(requests[1], &c, 1) != 1 || read(answers[0], &c, 1) != 1)
			stay();
		pthread_mutex_unlock(&requested);
		if (write(connection, &c, 1) != 1)
			break;
	}
}

static void server_pipe(void)
{
	static struct subject threads[ASKING];
	static const char *const names[ASKING] = {"chain_conn0", "chain_conn1", "chain_conn2",
						  "chain_conn3", "chain_conn4"};
	pid_t client;
	int pair[2];

	make_pipe(requests);
	make_pipe(answers);
	part_start(&(struct part){"chain_helper", helper_run, requests[0], answers[1]});
	close(requests[0]);
	close(answers[1]);
	for (long i = 0; i < ASKING; i++) {
		unix_pair(pair);
		client = part_start(&(struct part){"chain_client", part_request, -1, pair[0]});
		close(pair[0]);
		subject_start(&threads[i], names[i], connection_ask, (void *)(long)pair[1]);
		victim_add(client, threads[i].tid, "chain_client socket> %s *pipe> chain_helper*",
			   names[i]);
	}
	pid_add(getpid());
	sleep_ns(10 * NAP_NS);
}

/* --- children */

static void *vfork_stack[4096];

static int child_of_vfork(void *unused)
{
	(void)unused;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "chain_grand");
	stay();
	return 0;
}

/* Waits in clone(2) with CLONE_VFORK: the child has a stack of its own, so that it may do
 * anything. */
static void vfork_wait(const struct part *part)
{
	(void)part;
	clone(child_of_vfork, vfork_stack + sizeof(vfork_stack) / sizeof(*vfork_stack),
	      CLONE_VFORK | CLONE_VM | SIGCHLD, NULL);
}

static void child_wait(const struct part *part)
{
	pid_t child;
	int status;

	(void)part;
	child = part_start(&(struct part){"chain_child", vfork_wait, -1, -1});
	waitpid(child, &status, 0);
}

static pid_t only_child(pid_t pid)
{
	char path[64];
	int child = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	for (int i = 0; !child && i < 1000; i++) {
		sleep_ns(NS_PER_MS);
		file = fopen(path, "re");
		if (!file)
			unready("this kernel does not tell children");
		if (fscanf(file, "%d", &child) != 1)
			child = 0;
		fclose(file);
	}
	return child;
}

static void child_disk(void)
{
	pid_t parent = part_start(&(struct part){"chain_parent", child_wait, -1, -1});
	pid_t child = only_child(parent), grand = only_child(child);

	await_state(child, child, "D", NR_ANY);
	await_state(grand, grand, "S", NR_PAUSE);
	await_state(parent, parent, "S", SYS_wait4);
	pid_add(child);
	victim_add(parent, child, "chain_parent child> chain_child child> chain_grand");
	victim_add(child, grand, "chain_child child> chain_grand");
}

static const struct chain_row process_chains[] = {
	{"pipeline", pipeline},
	{"flock_stopped", flock_stopped},
	{"deadlock_flock", deadlock_flock},
	{"proxy_tcp", proxy_tcp},
	{"proxy_unix", proxy_unix},
	{"server_threads", server_threads},
	{"server_pipe", server_pipe},
	{"outside", outside},
	{"child_disk", child_disk},
	{0},
};

static const struct chain_row *const tables[] = {process_chains, lock_chains, kernel_chains,
						 namespace_chains};

static const struct chain_row *row_find(const char *name)
{
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		for (const struct chain_row *row = tables[i]; row->name; row++)
			if (!strcmp(row->name, name))
				return row;
	return NULL;
}

static void chain_run(void)
{
	const struct chain_row *row = row_find(option_text("of", "nested"));

	if (!row)
		unready("no chain of that name");
	row->prepare();
	ready_begin(getpid(), getpid());
	line_add("pids", "%s", pids);
	line_add("victims", "%s", victims);
	line_end();
	hold();
	unlink(locked_path[0]);
	unlink(locked_path[1]);
}

const struct workload chain_workloads[] = {
	{"chain", "of=NAME dir=PATH threads=N turn_ms=N turns=FILE",
	 "threads that wait for each other in a known chain", chain_run},
	{0},
};
