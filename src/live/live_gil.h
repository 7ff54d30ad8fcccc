/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Python's GIL, for those who look up what a thread waits for: nothing is read, nor in memory,
 * unless a column that tells it is wanted.
 */
#ifndef TSNAP_LIVE_LIVE_GIL_H
#define TSNAP_LIVE_LIVE_GIL_H

#include "unwind/runtime/python_gil.h"
#include "waits/waits.h"

runtime_lock_finder live_gil_find; /* finder: struct live */

#endif
