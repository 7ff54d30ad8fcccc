/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reports to users on the priority at which scans begin. */
#ifndef TSNAP_LIVE_SAMPLER_LIVE_REALTIME_H
#define TSNAP_LIVE_SAMPLER_LIVE_REALTIME_H

#include "base/priority.h"
#include "kernel/host.h"
#include "live/sampler/sampler.h"
#include "sample/source.h"

/* Returns why scans are at normal priority, as a static string. NULL: they are not. */
const char *live_realtime_why(const struct realtime *realtime, const struct host *host);

/* Adds what a report's footer says of the priority, and of scans that came late all the same. */
void live_realtime_describe(const struct realtime *realtime, const struct sampler_status *reported,
			    const struct host *host, struct source_status *status);

#endif
