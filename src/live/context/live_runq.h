/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reasons why threads in RQ don't run (column runq_why): a stage of its own, as the threads on all
 * CPUs at the scan time decide. */
#ifndef TSNAP_LIVE_CONTEXT_LIVE_RUNQ_H
#define TSNAP_LIVE_CONTEXT_LIVE_RUNQ_H

#include "live/context/live_host.h"

/* Returns the control group with the CPU quota that a sample in RQ is held back for; NULL: none.
 * on: the thread on the CPU that it waits for; NULL: that CPU is idle. The text is valid as long as
 * the host. */
const char *live_runq_throttled(struct live_host *host, const struct sample *sample,
				const struct thread_state *on);
/* Returns what holds a sample in RQ back if it is its scheduling class's own limit: a thread of a
 * lower class is on the CPU that it waits for, or none is. NULL: that is not so. policy: the
 * sample's. *due: the thread does not wait for
 * the one that runs there, as far as is known. */
const char *live_runq_budget(const struct sample *sample, int64_t policy,
			     const struct thread_state *on, bool *due);
/* Reads the CPU that a sample in RQ waits for, and its policy: its waker may have put it into the
 * queue of another CPU than that of its record. False: the thread is gone. */
bool live_runq_where(const struct sample *sample, int64_t *cpu, int64_t *policy);
/* Completes the samples in RQ, if the column is wanted. */
void live_runq_fill(struct live_host *host, struct sample *samples, size_t count);

#endif
