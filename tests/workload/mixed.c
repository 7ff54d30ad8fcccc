/* SPDX-License-Identifier: GPL-2.0-or-later */
/* More busy threads than CPUs, of several kinds with short times in each state: a sampler that gets
 * its CPU only when a thread gives one up sees too much sleep in them. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "workload.h"

#define THREADS_MAX 64 /* threads of each kind */
#define NS_PER_US 1000ll
#define CALIBRATIONS 200

static long burst_rounds, nap_ns;
static const char *directory;

static void rounds_spin(long rounds)
{
	for (long i = 0; i < rounds; i++)
		__asm__ volatile("" ::: "memory");
}

/* Returns the number of rounds that take that time on a CPU without other users: the fastest of
 * many tries. */
static long rounds_of_ns(int64_t ns)
{
	const long rounds = 100000;
	int64_t best_ns = INT64_MAX;

	for (int i = 0; i < CALIBRATIONS; i++) {
		int64_t before_ns = clock_ns(CLOCK_MONOTONIC), took_ns;

		rounds_spin(rounds);
		took_ns = clock_ns(CLOCK_MONOTONIC) - before_ns;
		if (took_ns < best_ns)
			best_ns = took_ns;
	}
	return (long)(ns * rounds / (best_ns ? best_ns : 1)) + 1;
}

static void burst(void *unused)
{
	(void)unused;
	for (;;) {
		rounds_spin(burst_rounds);
		sleep_ns(nap_ns);
	}
}

struct ends {
	int from, to;
};

static void pass_on(void *arg)
{
	const struct ends *ends = arg;
	char ball;

	while (read(ends->from, &ball, 1) == 1) {
		rounds_spin(burst_rounds / 10);
		if (write(ends->to, &ball, 1) != 1)
			die("write");
	}
}

static void sync_often(void *unused)
{
	char path[4096], block[4096] = {1};
	int fd;

	(void)unused;
	snprintf(path, sizeof(path), "%s/tsnap-test-%d", directory, gettid_now());
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		die(path);
	unlink(path); /* unlinked, so that it is removed however this process ends */
	while (pwrite(fd, block, sizeof(block), 0) == sizeof(block))
		if (fdatasync(fd))
			die("fdatasync");
	die("pwrite");
}

static void spin(void *unused)
{
	(void)unused;
	for (;;)
		__asm__ volatile("" ::: "memory");
}

/* Starts threads of a kind, and adds their ids under its name. */
static void kind_start(const char *kind, long count, void (*fn)(void *), struct ends *ends)
{
	static struct subject subjects[4 * THREADS_MAX];
	static size_t used;
	char tids[16 * THREADS_MAX] = "", *end = tids;

	for (long i = 0; i < count && i < THREADS_MAX; i++) {
		subject_start(&subjects[used], kind, fn, ends ? &ends[i] : NULL);
		end += sprintf(end, "%s%d", i ? "," : "", subjects[used++].tid);
	}
	line_add(kind, "%s", tids);
}

static void mixed_run(void)
{
	static struct ends ends[THREADS_MAX];
	long pairs = option_number("pairs", 2);

	nap_ns = option_number("nap_us", 100) * NS_PER_US;
	burst_rounds = rounds_of_ns(option_number("burst_us", 150) * NS_PER_US);
	directory = option_text("dir", "/var/tmp");
	if (pairs > THREADS_MAX / 2)
		die("too many pairs");
	for (long i = 0; i < pairs; i++) {
		int there[2], back[2];

		make_pipe(there);
		make_pipe(back);
		ends[2 * i] = (struct ends){there[0], back[1]};
		ends[2 * i + 1] = (struct ends){back[0], there[1]};
	}
	ready_begin(getpid(), getpid());
	kind_start("burst", option_number("bursts", 8), burst, NULL);
	kind_start("pipe", 2 * pairs, pass_on, ends);
	kind_start("sync", option_number("syncs", 2), sync_often, NULL);
	kind_start("spin", option_number("spins", 1), spin, NULL);
	for (long i = 0; i < pairs; i++) /* makes each pair begin */
		if (write(ends[2 * i + 1].to, "", 1) != 1)
			die("write");
	line_end();
	hold();
}

static int64_t rhythm_begin_ns, rhythm_ns, rhythm_work_ns;

/* Works at the same phase of each period. */
static void rhythm(void *arg)
{
	int64_t at_ns = rhythm_begin_ns + *(const int64_t *)arg;

	for (;;) {
		const struct timespec at = {at_ns / 1000000000, at_ns % 1000000000};

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
		while (clock_ns(CLOCK_MONOTONIC) < at_ns + rhythm_work_ns)
			;
		at_ns += rhythm_ns;
	}
}

static void rhythm_run(void)
{
	static struct subject subjects[THREADS_MAX];
	static int64_t offsets_ns[THREADS_MAX];
	long count = option_number("threads", 4);

	if (count < 1 || count > THREADS_MAX)
		die("threads");
	rhythm_ns = option_number("period_us", 50000) * NS_PER_US;
	rhythm_work_ns = option_number("work_us", 10000) * NS_PER_US;
	rhythm_begin_ns = clock_ns(CLOCK_MONOTONIC) + rhythm_ns;
	ready_begin(getpid(), getpid());
	for (long i = 0; i < count; i++) {
		char name[16];

		offsets_ns[i] = i * rhythm_ns / count;
		snprintf(name, sizeof(name), "rhythm%ld", i);
		subject_start(&subjects[i], name, rhythm, &offsets_ns[i]);
		line_add(name, "%d", subjects[i].tid);
	}
	line_end();
	hold();
}

/* Time that the thread was off its CPU in each function, measured by itself. */
static _Atomic int64_t short_ns, long_ns;
static long short_count, short_nap_ns, long_nap_ns;

static __attribute__((noinline)) void nap_short(int64_t ns)
{
	int64_t before_ns = clock_ns(CLOCK_MONOTONIC);

	for (long i = 0; i < short_count; i++)
		sleep_ns(ns);
	short_ns += clock_ns(CLOCK_MONOTONIC) - before_ns;
}

static __attribute__((noinline)) void nap_long(int64_t ns)
{
	int64_t before_ns = clock_ns(CLOCK_MONOTONIC);

	sleep_ns(ns);
	long_ns += clock_ns(CLOCK_MONOTONIC) - before_ns;
}

static void nap(void *unused)
{
	(void)unused;
	for (;;) {
		nap_short(short_nap_ns);
		nap_long(long_nap_ns);
	}
}

static void naps_run(void)
{
	static struct subject subject;
	char text[64];

	short_count = option_number("short_count", 50);
	short_nap_ns = option_number("short_us", 50) * NS_PER_US;
	long_nap_ns = option_number("long_us", 5000) * NS_PER_US;
	subject_start(&subject, "nap", nap, NULL);
	ready_begin(subject.tid, getpid());
	line_end();
	while (hold_line(text, sizeof(text))) {
		line_begin("done");
		line_add("short_ns", "%lld", (long long)short_ns);
		line_add("long_ns", "%lld", (long long)long_ns);
		line_end();
	}
}

const struct workload mixed_workloads[] = {
	{"naps", "short_count=N short_us=N long_us=N",
	 "a thread that sleeps for a short and a long time in turn, in two functions; `done` tells "
	 "the time spent in each",
	 naps_run},
	{"mixed", "bursts=N burst_us=N nap_us=N pairs=N syncs=N dir=PATH spins=N",
	 "busy threads: bursts between naps, pairs on pipes, fdatasync, spinners", mixed_run},
	{"rhythm", "threads=N period_us=N work_us=N",
	 "threads that each work at another place of every period", rhythm_run},
	{0},
};
