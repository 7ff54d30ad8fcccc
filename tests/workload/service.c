/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A service whose requests come at their own pace, whatever they cost: threads that each compute in
 * two functions, read a part of a file, and have a lock for a while, about once a period. What is
 * made slower takes longer then, and nothing else does. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "workload.h"

#define THREADS_MAX 16
#define READ_BYTES (48 << 10)
#define FILE_BYTES (4 << 20)
#define NS_PER_US 1000ll

static int64_t period_ns, alpha_ns, beta_ns, hold_ns;
static int file = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Two functions that differ, so that no linker folds them into one. They look at the clock seldom:
 * the time is their own. */
static __attribute__((noinline)) void alpha(int64_t ns)
{
	int64_t until_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
	volatile unsigned int sum = 1;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until_ns)
		for (int i = 0; i < 20000; i++)
			sum = sum * 3 + 1;
}

static __attribute__((noinline)) void beta(int64_t ns)
{
	int64_t until_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;
	volatile unsigned int sum = 1;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until_ns)
		for (int i = 0; i < 20000; i++)
			sum = sum * 5 + 2;
}

static void serve(void *unused)
{
	unsigned int seed = (unsigned int)gettid_now();
	int64_t at_ns = clock_ns(CLOCK_MONOTONIC);
	void *bytes = NULL;

	(void)unused;
	if (posix_memalign(&bytes, 4096, READ_BYTES))
		die("posix_memalign");
	for (;;) {
		int64_t now_ns;

		if (alpha_ns)
			alpha(alpha_ns);
		if (beta_ns)
			beta(beta_ns);
		if (file >= 0 &&
		    pread(file, bytes, READ_BYTES,
			  (off_t)(rand_r(&seed) % (FILE_BYTES / READ_BYTES)) * READ_BYTES) < 0)
			die("pread");
		if (hold_ns) {
			pthread_mutex_lock(&lock);
			sleep_ns(hold_ns);
			pthread_mutex_unlock(&lock);
		}
		at_ns += period_ns / 2 + rand_r(&seed) % period_ns;
		now_ns = clock_ns(CLOCK_MONOTONIC);
		if (at_ns > now_ns)
			sleep_ns(at_ns - now_ns);
		else
			at_ns = now_ns;
	}
}

static void file_make(const char *directory)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/service.%d", directory, getpid());
	file = open(path, O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
	if (file < 0)
		unready("no file that is read past the page cache");
	unlink(path);
	for (int i = 0; i < FILE_BYTES / READ_BYTES + 1; i++) {
		static char bytes[READ_BYTES] __attribute__((aligned(4096)));

		if (write(file, bytes, sizeof(bytes)) != sizeof(bytes))
			die("write");
	}
	fsync(file);
}

static void service_run(void)
{
	static struct subject subjects[THREADS_MAX];
	const char *directory = option_text("dir", NULL);
	long count = option_number("threads", 4);

	if (count < 1 || count > THREADS_MAX)
		die("threads");
	period_ns = option_number("period_us", 60000) * NS_PER_US;
	alpha_ns = option_number("alpha_us", 0) * NS_PER_US;
	beta_ns = option_number("beta_us", 0) * NS_PER_US;
	hold_ns = option_number("hold_us", 0) * NS_PER_US;
	if (directory)
		file_make(directory);
	for (long i = 0; i < count; i++)
		subject_start(&subjects[i], option_text("as", "service"), serve, NULL);
	ready_begin(subjects[0].tid, getpid());
	line_end();
	hold();
}

const struct workload service_workloads[] = {
	{"service", "threads=N period_us=N alpha_us=N beta_us=N hold_us=N dir=PATH as=NAME",
	 "threads that compute in two functions, read and lock, at a pace of their own",
	 service_run},
	{0},
};
