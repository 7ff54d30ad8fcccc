/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Cost of the full screen, without a terminal and a kernel.
 *
 * screen_path million              ms of CPU time to group a window of a million samples
 * screen_path memory               MB of ten minutes at 20 Hz of 500 active threads
 */
#include "base/clock.h"
#include "base/index.h"
#include "base/names.h"
#include "screen/history.h"
#include "screen/shown.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define THREADS 500
#define PERIOD_US 50000
#define FIRST_US 1795207373000000ll

/* Makes a sample of a thread that does one thing for some scans, then another. */
static struct sample sample_of(int64_t thread, int64_t scan)
{
	static const char *const calls[] = {"futex", "read", "epoll_wait", "pread64"};
	uint64_t dice = hash_u64((uint64_t)(thread * 100003 + scan / (1 + thread % 40)));
	int64_t state = dice % 4 ? STATE_DISK : dice % 8 ? STATE_ON : STATE_RQ;
	struct sample sample = *sample_absent();
	char name[64];

	sample.scan.time_us = FIRST_US + scan * PERIOD_US;
	sample.scan.weight_us = PERIOD_US;
	sample.thread.tid = 1000 + thread;
	sample.thread.pid = 1000 + thread / 10 * 10;
	snprintf(name, sizeof(name), "worker-%d", (int)(thread / 10));
	sample.thread.comm = name_of_string(name);
	sample.thread.commsum = name_of_string("worker-*");
	sample.thread.user = name_of_string("postgres");
	sample.now.state = state;
	sample.now.state_us = (int64_t)(hash_u64(dice) % 100000);
	sample.now.cpu = (int64_t)(dice % 64);
	snprintf(name, sizeof(name), "/var/lib/postgresql/15/main/base/%d", (int)(dice % 100));
	sample.call.name = state == STATE_ON ? NULL : name_of_string(calls[dice / 8 % 4]);
	sample.file.name = state == STATE_ON ? NULL : name_of_string(name);
	sample.sums.cpu_us = state == STATE_ON ? PERIOD_US - (int64_t)(dice % 1000) : 0;
	sample.sums.dwait_us = state == STATE_DISK ? PERIOD_US : 0;
	sample.sums.runq_us = (int64_t)(dice % 5);
	sample.sums.vcsw = (int64_t)(dice % 3);
	return sample;
}

static void scans_add(struct history *history, int64_t count)
{
	static struct sample samples[THREADS];
	struct scan scan = {.samples = samples, .count = THREADS, .weight_us = PERIOD_US};

	for (int64_t number = 0; number < count; number++) {
		for (int64_t i = 0; i < THREADS; i++)
			samples[i] = sample_of(i, number);
		scan.time_us = samples[0].scan.time_us;
		history_end_scan(history, &scan);
	}
}

static void million_time(void)
{
	struct history *history = history_new((size_t)1 << 30, 0);
	const struct query query = {.recorded = true};
	struct view *view = calloc(1, sizeof(*view));
	struct shown shown = {0};
	struct error e = {0};
	struct timespec began, ended;

	if (!view || view_init(view, &query, &e))
		exit(1);
	scans_add(history, 1000000 / THREADS);
	view->now.window_us = 1000000 / THREADS * (int64_t)PERIOD_US;
	shown_fill(&shown, history, &view->now, 72); /* the first call grows the tables */
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &began);
	shown_fill(&shown, history, &view->now, 72);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ended);
	printf("%.3f\n", (double)(ended.tv_sec - began.tv_sec) * 1e3 +
				 (double)(ended.tv_nsec - began.tv_nsec) / 1e6);
	if (shown.tally.samples != 1000000)
		exit(1);
	shown_done(&shown);
	history_free(history);
	free(view);
}

static void memory_measure(void)
{
	struct history *history = history_new(HISTORY_BYTES_DEFAULT, HISTORY_AGE_DEFAULT_US);
	struct history_view view = {0};

	scans_add(history, HISTORY_AGE_DEFAULT_US / PERIOD_US);
	history_look(history, &view);
	printf("%.3f\n", (double)history_bytes(history) / 1e6);
	if (view.thinned_scans || view.dropped_scans)
		exit(1);
	history_view_done(&view);
	history_free(history);
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "million"))
		million_time();
	else if (argc == 2 && !strcmp(argv[1], "memory"))
		memory_measure();
	else
		return 2;
	names_clear();
	return 0;
}
