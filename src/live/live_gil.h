/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Python's GIL, for those who look up what a thread waits for: nothing is read, nor in memory,
 * unless a column that tells it is wanted.
 */
#ifndef TSNAP_LIVE_LIVE_GIL_H
#define TSNAP_LIVE_LIVE_GIL_H

#include "live/context/live_context.h"
#include "unwind/runtime/python_gil.h"
#include "waits/waits.h"

struct live_gil {
	const struct live_context *context;
	struct python_gils gils;
};

runtime_lock_finder live_gil_find; /* finder: struct live_gil */

#endif
