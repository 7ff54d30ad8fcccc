/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes the thread state array larger when it gets full: a second set of maps and programs is
 * loaded and attached, and what the first has counted is carried over. For src/live only.
 *
 * Both sets are attached for a while, so it is decided which one counts: forks, execs and exits by
 * reading a row of both at the same event (process_totals_visit_both()); requests in flight are
 * given to the second set, as the first one has them (block_reader_carry()); histograms and single
 * events by one word of ts_latency, a map that the second set shares (latency_reader_take_over()).
 * An event is reported once (event_reader_adopt()) if that word changes in its midst, and may be in
 * two histograms.
 */
#ifndef TSNAP_LIVE_LIVE_GROW_H
#define TSNAP_LIVE_LIVE_GROW_H

#include "live/scan/live_state.h"

/* Makes the array larger if few slots are left. Call between scans. 0, also where there was no need
 * or it can't be done, which is reported with the threads that do not fit; -EINTR; or -errno: the
 * sampling thread can't be started again. */
int live_grow(struct live *live);

#endif
