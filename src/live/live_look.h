/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One look at all threads that a filter accepts, beside the scans: what a report without samples
 * tells of them.
 *
 * It is a walk beside those of scans, with needs and a filter of its own, for
 * cli/run_sleepers.c, which groups what it gives (report/sleepers.h). A few more looks follow
 * while it is not known why some sleep. Where nobody is there, a second look at everybody asks
 * each option by itself which of them is of no thread.
 */
#ifndef TSNAP_LIVE_LIVE_LOOK_H
#define TSNAP_LIVE_LIVE_LOOK_H

#include "live/live_state.h"

/* struct source's */
int live_look(struct source *source, struct filter *filter, uint64_t needs, sample_callback *take,
	      void *to);

#endif
