/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The live host in a pid namespace of its own: which threads' records are shown, and how they
 * replace what was seeded. For src/live only.
 *
 * /proc has no key for threads that slept before the start: live_seed keeps them until the kernel
 * makes their record, and live_namespace hands their totals over.
 */
#ifndef TSNAP_LIVE_LIVE_NAMESPACE_H
#define TSNAP_LIVE_LIVE_NAMESPACE_H

#include "live/context/live_context.h"

/* True if the record is of a thread that /proc can show. Replaces the thread's seed by the record:
 * what the thread did before the record was made is carried over. */
bool live_namespace_meet(struct live_context *context, const struct thread_state *record);

/* Replaces the kernel's waker_tid of a sample by the one of /proc. It becomes absent for a thread
 * of another namespace; the thread's name is filled all the same. */
void live_namespace_waker(struct live_context *context, struct sample *sample);

#endif
