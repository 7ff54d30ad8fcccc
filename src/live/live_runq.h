/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Why threads in RQ don't run (column runq_why): a stage of its own, as the threads on all CPUs at
 * the scan time decide. */
#ifndef TSNAP_LIVE_LIVE_RUNQ_H
#define TSNAP_LIVE_LIVE_RUNQ_H

#include "live/live_host.h"

/* The control group for whose CPU quota a sample in RQ is held back; NULL: none. on: the thread on
 * the CPU that it waits for, NULL: that is idle. Valid as long as the host. */
const char *live_runq_throttled(struct live_host *host, const struct sample *sample,
				const struct thread_state *on);
/* Completes the samples in RQ, where the column is asked for. */
void live_runq_fill(struct live_host *host, struct sample *samples, size_t count);

#endif
