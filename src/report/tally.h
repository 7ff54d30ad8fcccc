/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The totals of a report, over all its groups. Zeroed is an empty one. */
#ifndef TSNAP_REPORT_TALLY_H
#define TSNAP_REPORT_TALLY_H

#include <stdint.h>

#include "base/clock.h"
#include "report/exact_times.h"
#include "sample/sample.h"

struct tally {
	int64_t scans; /* number of scans, also of those that saw nobody */
	int64_t samples;
	int64_t elapsed_us;	      /* time that the scans stand for */
	int64_t from_us, until_us;    /* UTC; meant when there are scans */
	int64_t active, active_max;   /* active threads: sum over the scans, and most in one */
	int64_t threads, threads_max; /* all threads that were seen, likewise; 0: not known */
	int64_t active_sum;	      /* active threads in parts of a scan that is not whole yet */
	/* processes, and CPU time that threads had used that ended; the most of it, by whom */
	int64_t forks, execs, exits, dead_cpu_us, most_cpu_us;
	const char *most_comm, *most_user;
	/* exact times: of all groups, others' weights included, 0: samples count; and by kind of
	 * time what there was, and what is of threads with samples of that kind */
	int64_t shared_us, all_us[TIME_KINDS], covered_us[TIME_KINDS];
	int64_t cpu_us; /* exact, of all groups where all threads are in them; 0: not known */
};

/* A weight as threads on average, in hundredths, and as its part of all, per mille: time in us
 * where shared_us is, else samples. */
int64_t tally_avg_thr(const struct tally *tally, int64_t weight);
int64_t tally_share(const struct tally *tally, int64_t weight);

void tally_add_batch(struct tally *tally, const struct scan *batch);
/* scan: the last batch, or all of it. */
void tally_add(struct tally *tally, const struct scan *scan);
/* An account, which may be one of forks, execs and exits. */
void tally_add_account(struct tally *tally, const struct sample *account);
/* A time from from_us on (UTC) in which that many scans saw nobody. */
void tally_add_silence(struct tally *tally, int64_t from_us, int64_t silent_us, int64_t scans);

#endif
