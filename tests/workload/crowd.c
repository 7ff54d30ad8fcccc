/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Many threads, short-lived threads, and threads with names that break naive output. */
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "workload.h"

#define STACK_BYTES (64u << 10)
#define PROCESS_THREADS 1000

static int pipe_fds[2];

/* Sleeps like the threads of a real host: in locks, descriptors, timers. */
static void sleep_somehow(void *kind)
{
	static int word;
	char c;

	for (;;)
		switch ((intptr_t)kind % 3) {
		case 0:
			syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
			break;
		case 1:
			syscall(SYS_read, pipe_fds[0], &c, 1);
			break;
		default:
			syscall(SYS_ppoll, NULL, 0, NULL, NULL, 0);
		}
}

static void *sleeper_main(void *kind)
{
	sleep_somehow(kind);
	return NULL;
}

static void crowd_add(long threads)
{
	char *stacks = mmap(NULL, (size_t)threads * STACK_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	pthread_attr_t attr;
	pthread_t thread;

	if (stacks == MAP_FAILED)
		die("mmap");
	pthread_attr_init(&attr);
	for (long i = 0; i < threads; i++) {
		pthread_attr_setstack(&attr, stacks + i * STACK_BYTES, STACK_BYTES);
		errno = pthread_create(&thread, &attr, sleeper_main, (void *)(intptr_t)i);
		if (errno)
			die("pthread_create");
	}
}

struct player {
	int from, to;
	long period_us;
};

static void play_slowly(void *data)
{
	struct player *player = data;
	char ball = 0;

	while (write(player->to, &ball, 1) == 1 && read(player->from, &ball, 1) == 1)
		if (player->period_us)
			sleep_ns(player->period_us * 1000);
}

static void pair_start(long period_us)
{
	struct player *one = calloc(2, sizeof(*one)), *two = one + 1;
	struct subject subject;
	int there[2], back[2];

	if (!one)
		die("calloc");
	make_pipe(there);
	make_pipe(back);
	*one = (struct player){back[0], there[1], period_us};
	*two = (struct player){there[0], back[1], 0};
	subject_start(&subject, "active", play_slowly, one);
	subject_start(&subject, "active", play_slowly, two);
}

static void many_run(void)
{
	long threads = option_number("threads", 1000), pairs = option_number("pairs", 0);
	long period_us = option_number("period_us", 5000), processes = 0;
	int up[2];
	char c;

	limits_raise();
	make_pipe(pipe_fds);
	make_pipe(up);
	for (long left = threads; left > 0; left -= PROCESS_THREADS, processes++)
		if (!child_fork()) {
			prctl(PR_SET_NAME, "crowd");
			/* one of the threads is the process's first one */
			crowd_add((left < PROCESS_THREADS ? left : PROCESS_THREADS) - 1);
			if (write(up[1], "", 1) != 1)
				die("write");
			close(up[1]); /* closed, so that the end of a dead process is seen */
			sleep_somehow(NULL);
		}
	close(up[1]);
	for (long i = 0; i < processes; i++)
		if (read(up[0], &c, 1) != 1)
			die("a process failed");
	for (long i = 0; i < pairs; i++)
		pair_start(period_us);
	ready_begin(getpid(), getpid());
	line_add("threads", "%ld", threads);
	line_add("processes", "%ld", processes);
	line_end();
	hold();
}

static void *brief(void *unused)
{
	sleep_ns(1000);
	return unused;
}

struct storm {
	int64_t end_ns;
	long forks, threads;
};

static void storm_threads(void *data)
{
	struct storm *storm = data;
	pthread_t thread;

	while (clock_ns(CLOCK_MONOTONIC) < storm->end_ns) {
		errno = pthread_create(&thread, NULL, brief, NULL);
		if (errno)
			die("pthread_create");
		pthread_join(thread, NULL);
		storm->threads++;
	}
}

static void storm_forks(struct storm *storm)
{
	while (clock_ns(CLOCK_MONOTONIC) < storm->end_ns) {
		pid_t pid = fork();

		if (!pid) {
			if (storm->forks % 2)
				brief(NULL);
			_exit(0);
		}
		if (pid < 0 || waitpid(pid, NULL, 0) != pid)
			die("fork");
		storm->forks++;
	}
}

static void exit_storm_run(void)
{
	struct storm storm = {0};
	struct subject subject;
	char text[64];

	ready_begin(getpid(), getpid());
	line_end();
	while (hold_line(text, sizeof(text))) {
		storm.end_ns = clock_ns(CLOCK_MONOTONIC) + atol(text) * 1000000;
		subject_start(&subject, "storm", storm_threads, &storm);
		storm_forks(&storm);
		pthread_join(subject.thread, NULL);
		line_begin("done");
		line_add("forks", "%ld", storm.forks);
		line_add("threads", "%ld", storm.threads);
		line_end();
	}
}

/* Makes names unique to one run: other runs on this host may use the same workload. */
static void name_set(const char *suffix)
{
	char name[16];

	snprintf(name, sizeof(name), "%s%s", option_text("as", "brief"), suffix);
	prctl(PR_SET_NAME, name);
}

/* Uses an amount of CPU time in a process of its own, sleeps, and ends; under a name of its own. */
static void brief_run(void)
{
	int64_t cpu_ns = option_number("us", 0) * 1000, sleep_us = option_number("sleep_us", 0);

	name_set("");
	while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < cpu_ns)
		;
	if (sleep_us)
		sleep_ns(sleep_us * 1000);
	_exit(0);
}

/* Returns the usage of this process, or of its children that have ended: RUSAGE_x. */
static struct rusage usage_of(int who)
{
	struct rusage usage;

	if (getrusage(who, &usage))
		die("getrusage");
	return usage;
}

static long long cpu_us_of(const struct rusage *usage)
{
	return (usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000000ll +
	       usage->ru_utime.tv_usec + usage->ru_stime.tv_usec;
}

static void brief_start(const char *path)
{
	char us[64], sleep_us[64], as[64];
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (pid)
		return;
	snprintf(us, sizeof(us), "us=%ld", option_number("us", 0));
	snprintf(sleep_us, sizeof(sleep_us), "sleep_us=%ld", option_number("sleep_us", 0));
	snprintf(as, sizeof(as), "as=%s", option_text("as", "brief"));
	execl(option_text("program", path), path, "brief", us, sleep_us, as, (char *)NULL);
	_exit(1);
}

static void forks_run(void)
{
	char text[64], path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n < 0)
		die("readlink");
	path[n] = 0;
	name_set("_parent");
	ready_begin(getpid(), getpid());
	line_end();
	while (hold_line(text, sizeof(text))) {
		const struct rusage from = usage_of(RUSAGE_CHILDREN),
				    own_from = usage_of(RUSAGE_SELF);
		struct rusage to, own_to;
		long count = atol(text), failed = 0;
		int status;

		for (long i = 0; i < count; i++) {
			brief_start(path);
			/* runs two at a time */
			if (i)
				failed += wait(&status) < 0 || status;
		}
		failed += wait(&status) < 0 || status;
		if (failed)
			die("a child failed");
		to = usage_of(RUSAGE_CHILDREN);
		own_to = usage_of(RUSAGE_SELF);
		line_begin("done");
		line_add("cpu_us", "%lld", cpu_us_of(&to) - cpu_us_of(&from));
		line_add("own_us", "%lld", cpu_us_of(&own_to) - cpu_us_of(&own_from));
		line_add("preempted", "%ld",
			 to.ru_nivcsw - from.ru_nivcsw + own_to.ru_nivcsw - own_from.ru_nivcsw);
		line_end();
	}
}

/* Names that break naive output: a comm is at most 15 bytes, and the kernel accepts any but NUL. */
static const char *const hostile_names[] = {
	"a,b,c",
	"\"quoted\"",
	"new\nline",
	"cr\r\nlf",
	"\x1b[31mred",
	"\x1b]0;title\a",
	"bad\xff\xfeutf8",
	"cut\xe2\x82",
	"semi;colon\ttab",
	"=cmd|calc!A1",
	"' OR 1=1 --",
	"{\"json\": 1}\\",
	"\x01\x02\x7f\x80",
	") S 1 1 (",
	"  spaces  ",
	"%s%n%d",
	"\xe2\x80\xaertl",
	"\\n\\u0000",
	"\xc3\xa9t\xc3\xa9",
	",",
};
#define HOSTILE_COUNT (sizeof(hostile_names) / sizeof(hostile_names[0]))

static void hostile_comm_run(void)
{
	static struct subject subjects[HOSTILE_COUNT];
	char key[32];

	make_pipe(pipe_fds);
	for (size_t i = 0; i < HOSTILE_COUNT; i++)
		subject_start(&subjects[i], hostile_names[i], sleep_somehow, (void *)1);
	for (size_t i = 0; i < HOSTILE_COUNT; i++)
		await_state(getpid(), subjects[i].tid, "S", SYS_read);
	ready_begin(getpid(), getpid());
	for (size_t i = 0; i < HOSTILE_COUNT; i++) {
		snprintf(key, sizeof(key), "comm%d", subjects[i].tid);
		line_add(key, "%s", hostile_names[i]);
	}
	line_end();
	hold();
}

const struct workload crowd_workloads[] = {
	{"many", "threads=N pairs=N period_us=N",
	 "sleeping threads, and pairs that wake each other", many_run},
	{"brief", "us= sleep_us= as=", "what forks makes: us of CPU time, then a sleep", brief_run},
	{"forks", "us= sleep_us= as= program=",
	 "a line with a number: so many short processes called `as`, which execute `program`, a "
	 "link",
	 forks_run},
	{"exit_storm", "", "a line with milliseconds: forks and threads that end at once",
	 exit_storm_run},
	{"hostile_comm", "", "threads with hostile names", hostile_comm_run},
	{0},
};
