/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Thinning of old chunks of a history; for history.c only. */
#ifndef TSNAP_SCREEN_HISTORY_COARSE_H
#define TSNAP_SCREEN_HISTORY_COARSE_H

#include "screen/history_code.h"

#define HISTORY_COARSE_US 1000000

/* Makes a new chunk, still open for writing, with the last scan of each HISTORY_COARSE_US of this
 * one. Its samples stand for the time of the scans that are left out, and have their exact times;
 * threads that only those scans have become accounts. NULL: there is nothing to leave out. */
struct history_chunk *history_coarsen(const struct history_chunk *chunk,
				      struct history_texts *texts);

#endif
