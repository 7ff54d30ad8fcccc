/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Python's GIL and Java's monitors, for lookups of what a thread waits for, and of its wait class.
 * Nothing is read until a thread waits for a futex whose holder is not known otherwise. */
#ifndef TSNAP_LIVE_LIVE_RUNTIME_LOCKS_H
#define TSNAP_LIVE_LIVE_RUNTIME_LOCKS_H

#include "live/context/live_context.h"
#include "waits/wait_object.h"
#include "unwind/runtime/runtime_locks.h"

/* Zeroed but for context. */
struct live_runtime_locks {
	const struct live_context *context;
	struct runtime_finder gils, monitors;
};

void live_runtime_locks_done(struct live_runtime_locks *locks);
/* Sweeps the GILs and monitors that are known. Call about once a second. */
void live_runtime_locks_sweep(struct live_runtime_locks *locks, int64_t now_ns);

runtime_lock_finder live_runtime_lock_find; /* finder: struct live_runtime_locks */

#endif
