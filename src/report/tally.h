/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The totals of a report, over all its groups. A zeroed tally is empty. */
#ifndef TSNAP_REPORT_TALLY_H
#define TSNAP_REPORT_TALLY_H

#include <stdint.h>

#include "base/clock.h"
#include "report/exact_times.h"
#include "sample/sample.h"

struct tally {
	int64_t scans; /* number of scans, including scans that saw no thread */
	int64_t samples;
	int64_t elapsed_us; /* time that the scans stand for */
	/* begin and end, UTC, by the clock as it was at the end; valid if there are scans */
	int64_t from_us, until_us;
	/* number of times that the clock was set, how far the last time, and the time then, UTC */
	int64_t clock_steps, clock_step_us, clock_stepped_us;
	int64_t active, active_max;   /* active threads: sum over the scans, and most in one */
	int64_t threads, threads_max; /* all threads seen: sum, and most in one; 0: not known */
	int64_t active_sum; /* active threads in the batches of a scan that is not complete yet */
	/* numbers of forks, execs and exits; CPU time of exited threads; the most of one group of
	 * them (by comm and user) */
	int64_t forks, execs, exits, dead_cpu_us, most_cpu_us;
	const char *most_comm, *most_user;
	/* exact times: shared_us of all groups, weights of the others included (0: samples are
	 * counted); by kind of time, all of it, and the time of threads with samples of that
	 * kind */
	int64_t shared_us, all_us[TIME_KINDS], covered_us[TIME_KINDS];
	int64_t cpu_us; /* exact CPU time of all groups, if all threads are in them; 0: not known */
};

/* A weight as average number of threads, in hundredths, and as its share of the total, per mille.
 * The weight is time in us if shared_us is set, else samples. */
int64_t tally_avg_thr(const struct tally *tally, int64_t weight);
int64_t tally_share(const struct tally *tally, int64_t weight);

void tally_add_batch(struct tally *tally, const struct scan *batch);
/* Adds a scan; scan: its last batch, or all of it. */
void tally_add(struct tally *tally, const struct scan *scan);
/* Adds an account, which may be of forks, execs and exits. */
void tally_add_account(struct tally *tally, const struct sample *account);
/* Adds a time from from_us on (UTC) in which that many scans saw no thread. */
void tally_add_silence(struct tally *tally, int64_t from_us, int64_t silent_us, int64_t scans);

#endif
