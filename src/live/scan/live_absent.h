/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Columns that this host can't give, and why; processes and files that were not looked at. */
#ifndef TSNAP_LIVE_LIVE_ABSENT_H
#define TSNAP_LIVE_LIVE_ABSENT_H

#include "maps/kernel.h"
#include "sample/source.h"

/* Adds to the status what the opened kernel lacks of needs (NEED_*). */
void live_absent_describe(const struct kernel *kernel, uint64_t needs,
			  struct source_status *status);

/* Adds to the status what keeper/avoid.h has. The words stay valid until the next call. */
void live_avoided_describe(struct source_status *status);

#endif
