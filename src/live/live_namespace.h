/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Live in a pid namespace of its own: whose records are shown, and how they meet what was seeded.
 * For src/live/live*.c only.
 *
 * /proc tells no key for those that slept before the start: live_seed keeps them until the
 * kernel makes their record, and live_namespace hands their totals over.
 */
#ifndef TSNAP_LIVE_LIVE_NAMESPACE_H
#define TSNAP_LIVE_LIVE_NAMESPACE_H

#include "live/context/live_context.h"

/* True if the record is of a thread that /proc can show. Who waited as seeded does not any more:
 * what it did before the record was made is carried over to that. */
bool live_namespace_meet(struct live_context *context, const struct thread_state *record);

/* The kernel's waker_tid of a sample becomes the one of /proc; absent for a thread of another
 * namespace, whose name is told all the same. */
void live_namespace_waker(struct live_context *context, struct sample *sample);

#endif
