/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Threads that were on the CPUs at the time of the present scan. tsnap's own threads are left out:
 * they took the CPU from another thread at that time. */
#ifndef TSNAP_LIVE_CONTEXT_LIVE_CPUS_H
#define TSNAP_LIVE_CONTEXT_LIVE_CPUS_H

#include <stddef.h>
#include <stdint.h>

#include "kernel/record.h"

struct live_context;

/* Returns the record of the thread on that CPU. NULL: the CPU was idle, or it is not known. */
const struct thread_state *live_cpus_thread(struct live_context *context, int64_t cpu);
/* Returns the records of all threads on CPUs in turn: *at starts at 0; NULL at the end. */
const struct thread_state *live_cpus_next(struct live_context *context, size_t *at);

#endif
