/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --self: has the kernel count while tsnap runs, and gathers what tsnap costs; for src/live
 * only. */
#ifndef TSNAP_LIVE_LIVE_SELF_H
#define TSNAP_LIVE_LIVE_SELF_H

#include <stdint.h>

#include "maps/cpu_sampler.h"
#include "maps/kept_stacks.h"
#include "maps/kernel.h"
#include "parser/parser.h"
#include "sample/self_cost.h"

struct live_self {
	bool requested;
	int stats;		   /* the kernel counts while this descriptor is open; -1: none */
	const char *uncounted_why; /* reason, as in struct self_cost */
	int64_t start_cpu_ns, child_cpu_ns;
};

/* Begins counting. Call when all is loaded. cpu_ns: clock_cpu_ns() at the start. */
void live_self_open(struct live_self *self, struct kernel *kernel, int64_t cpu_ns);
void live_self_close(struct live_self *self); /* may be called where it was never opened */

/* Fills *cost; if self was not opened, as not requested. sampler: of stacks on CPUs. kept: stacks
 * that switches keep. Either may be closed. scans: made so far. */
void live_self_describe(const struct live_self *self, const struct kernel *kernel,
			const struct cpu_sampler *sampler, const struct kept_stacks *kept,
			const struct parsers *parsers, uint64_t scans, struct self_cost *cost);

#endif
