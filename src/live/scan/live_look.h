/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One look at all threads that a filter accepts, beside the scans: what a report without samples
 * shows of them.
 *
 * It is a walk beside those of scans, with needs and a filter of its own, for report/sleepers.c,
 * which groups the samples (report/sleepers.h). A few more looks follow while it is not known why
 * some threads sleep. If the filter accepts no thread, a second look at all threads finds the
 * options that match no thread by themselves.
 */
#ifndef TSNAP_LIVE_LIVE_LOOK_H
#define TSNAP_LIVE_LIVE_LOOK_H

#include "live/scan/live_state.h"

/* Implements look of struct source. */
int live_look(struct source *source, struct filter *filter, uint64_t needs, sample_callback *take,
	      void *to);

#endif
