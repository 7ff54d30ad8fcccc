/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Repeats one operation for a while and prints the time of one, in nanoseconds.
 *
 * operations NAME MILLISECONDS [cpu]: the caller runs it with and without tsnap and compares. cpu:
 * in CPU time of this process and its peer, for hosts where others use the CPU, too. operations
 * churn COUNT: makes COUNT processes that end at once, on all CPUs; prints nothing.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000ll
#define NS_PER_MS 1000000ll

static void die(const char *what)
{
	fprintf(stderr, "operations: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	if (clock_gettime(clock, &now))
		die("clock_gettime");
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* Pins the process. number: 0 the first CPU that it may use, 1 the second. */
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
static pid_t peer;

static int64_t cpu_ns(void)
{
	int64_t ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	clockid_t clock;

	if (peer && !clock_getcpuclockid(peer, &clock))
		ns += clock_ns(clock);
	return ns;
}

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

static void programs(long count)
{
	char *argv[] = {"true", NULL};
	pid_t pid;

	for (long i = 0; i < count; i++)
		if (posix_spawn(&pid, "/bin/true", NULL, NULL, argv, argv + 1) ||
		    waitpid(pid, NULL, 0) != pid)
			die("posix_spawn");
}

#define CALL_ROUNDS 200000

void operations_call(long rounds); /* has a symbol, and is probed by it */

__attribute__((noinline)) void operations_call(long rounds)
{
	for (long i = 0; i < rounds; i++)
		__asm__ volatile("");
}

static void calls(long count)
{
	for (long i = 0; i < count; i++)
		operations_call(CALL_ROUNDS);
}

/* Connects to itself, accepts, and resets the connection, so that no port stays in TIME_WAIT. */
static void connections(long count)
{
	static const struct linger reset = {.l_onoff = 1};
	static struct sockaddr_in at = {.sin_family = AF_INET};
	static int listener = -1;
	socklen_t bytes = sizeof(at);

	if (listener < 0) {
		listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		if (bind(listener, (struct sockaddr *)&at, bytes) || listen(listener, 1) ||
		    getsockname(listener, (struct sockaddr *)&at, &bytes))
			die("listen");
	}
	for (long i = 0; i < count; i++) {
		int one = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), other;

		if (connect(one, (struct sockaddr *)&at, sizeof(at)))
			die("connect");
		other = accept(listener, NULL, NULL);
		if (other < 0 || setsockopt(one, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)))
			die("accept");
		close(one);
		close(other);
	}
}

/* Sends a datagram to itself over loopback, and receives it. */
static void datagrams(long count)
{
	static int one = -1;
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t bytes = sizeof(at);
	char data[64] = {0};

	if (one < 0) {
		one = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		if (bind(one, (struct sockaddr *)&at, bytes) ||
		    getsockname(one, (struct sockaddr *)&at, &bytes) ||
		    connect(one, (struct sockaddr *)&at, bytes))
			die("bind");
	}
	for (long i = 0; i < count; i++)
		if (send(one, data, sizeof(data), 0) < 0 || recv(one, data, sizeof(data), 0) < 0)
			die("send");
}

/* Fails to open a file. */
static void opens(long count)
{
	for (long i = 0; i < count; i++)
		syscall(SYS_openat, AT_FDCWD, "/no such directory/file", O_RDONLY);
}

/* Starts the peer, which ends when this process' end of its pipe is closed, however this process
 * ends. */
static void peer_start(int cpu)
{
	int there[2], back[2];
	char ball;

	if (pipe(there) || pipe(back))
		die("pipe");
	peer = fork();
	switch (peer) {
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
	long batch;   /* operations between two readings of the clock */
	int peer_cpu; /* CPU of the peer; -1: none */
};

/* clang-format off */
static const struct operation operations[] = {
	{"syscall",    system_calls, 10000, -1},
	{"pipe_same",  round_trips,  200,    0},
	{"pipe_cross", round_trips,  200,    1},
	{"fork",       processes,    20,    -1},
	{"exec",       programs,     20,    -1},
	{"connect",    connections,  100,   -1},
	{"datagram",   datagrams,    1000,  -1},
	{"open",       opens,        1000,  -1},
	{"call",       calls,        100,   -1},
};
/* clang-format on */
#define OPERATION_COUNT (sizeof(operations) / sizeof(operations[0]))

static double measure(const struct operation *operation, int64_t length_ns, bool of_cpu)
{
	int64_t start_ns, start_cpu_ns, passed_ns;
	long count = 0;

	if (operation->peer_cpu >= 0)
		peer_start(operation->peer_cpu); /* before pinning: the peer inherits the CPUs */
	pin_cpu(0);
	operation->repeat(operation->batch);
	start_ns = clock_ns(CLOCK_MONOTONIC);
	start_cpu_ns = cpu_ns();
	do {
		operation->repeat(operation->batch);
		count += operation->batch;
		passed_ns = clock_ns(CLOCK_MONOTONIC) - start_ns;
	} while (passed_ns < length_ns);
	if (of_cpu)
		passed_ns = cpu_ns() - start_cpu_ns;
	return (double)passed_ns / (double)count;
}

/* Makes processes: one process for each CPU makes its share. */
static int churn(long count)
{
	int failed = 0, status;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	for (long cpu = 0; cpu < cpus; cpu++) {
		if (fork())
			continue;
		for (long i = 0; i < count / cpus; i++) {
			pid_t pid = vfork();

			if (!pid)
				_exit(0);
			if (pid < 0 || waitpid(pid, NULL, 0) != pid)
				die("vfork");
		}
		_exit(0);
	}
	while (wait(&status) > 0)
		failed |= status != 0;
	return failed;
}

int main(int argc, char **argv)
{
	bool of_cpu = argc == 4 && !strcmp(argv[3], "cpu");

	for (size_t i = 0; (argc == 3 || of_cpu) && i < OPERATION_COUNT; i++)
		if (!strcmp(operations[i].name, argv[1])) {
			printf("%.1f\n",
			       measure(&operations[i], atol(argv[2]) * NS_PER_MS, of_cpu));
			return 0;
		}
	if (argc == 3 && !strcmp(argv[1], "churn"))
		return churn(atol(argv[2]));
	fprintf(stderr, "usage: operations NAME MILLISECONDS [cpu] | operations churn COUNT\n");
	return 2;
}
