/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Why threads in RQ don't run (column runq_why): a stage of its own, as the threads on all CPUs at
 * the scan's moment decide. */
#ifndef TSNAP_LIVE_LIVE_RUNQ_H
#define TSNAP_LIVE_LIVE_RUNQ_H

#include "live/live_host.h"

/* Completes the samples in RQ, where the column is asked for. */
void live_runq_tell(struct live_host *host, struct sample *samples, size_t count);

#endif
