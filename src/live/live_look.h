/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One look at all threads that a filter accepts, beside the scans: what a report without samples
 * tells of them.
 */
#ifndef TSNAP_LIVE_LIVE_LOOK_H
#define TSNAP_LIVE_LIVE_LOOK_H

#include "live/live_state.h"

/* struct source's */
int live_look(struct source *source, struct filter *filter, uint64_t needs, sample_taker *take,
	      void *to);

#endif
