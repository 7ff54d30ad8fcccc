/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes the thread state array larger when it gets full: a second set of maps and programs is
 * loaded and attached, and what the first has counted is carried over. For src/live/live*.c only.
 */
#ifndef TSNAP_LIVE_LIVE_GROW_H
#define TSNAP_LIVE_LIVE_GROW_H

#include "live/live_state.h"

/* To be called between scans. 0, also where there was no need or it can't be done, which is told
 * with the threads that do not fit; or -EINTR. */
int live_grow(struct live *live);

#endif
