/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fewer scans of an old part of a history; for history.c only. */
#ifndef TSNAP_SCREEN_HISTORY_COARSE_H
#define TSNAP_SCREEN_HISTORY_COARSE_H

#include "screen/history_code.h"

#define HISTORY_COARSE_US 1000000

/* A new chunk with one scan, the last, of each HISTORY_COARSE_US of this one, still open for
 * writing. Its samples stand for the time of those that are left out, and have their exact times;
 * those of threads that only the others have become accounts. NULL: there is nothing to leave out.
 */
struct history_chunk *history_coarsen(const struct history_chunk *chunk,
				      struct history_texts *texts);

#endif
