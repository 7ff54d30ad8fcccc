/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/live_options.h"
#include "base/clock.h"
#include "live/live_groups.h"
#include "live/trace_table.h"

#include <string.h>

#define CLOCK_RATE_MIN_HZ 20 /* rate of the perf clock, so that its look is never old */

/* Returns the ids of -p if they stay the same, else NULL: a name is looked for again, and
 * descendants come. */
static const char *pids_fixed(const struct live_config *config)
{
	const char *text = config->process;

	return text && !config->descendants && !text[strspn(text, "0123456789,")] ? text : NULL;
}

void live_kernel_options(const struct live_config *config, uint64_t needs,
			 struct kernel_options *options)
{
	/* samplers that attach later may need more */
	const uint64_t wanted = config->share ? needs | ~NEEDS_PROBED : needs;

	*options = (struct kernel_options){
		.types_choice = config->kernel_types,
		.btf_file = config->btf_file,
		.offsets_file = config->offsets_file,
		.without = config->without,
		.threads_max = config->max_threads,
		.rate_hz =
			config->rate_hz > CLOCK_RATE_MIN_HZ ? config->rate_hz : CLOCK_RATE_MIN_HZ,
		.groups = live_groups_of(wanted) | trace_groups_of(config->traces),
		.parts = live_parts_of(wanted),
		.latency_kinds = config->traces,
		.trace_pids = pids_fixed(config),
		.trace_tids = config->threads,
		.slower_ns = (uint64_t)config->slower_ms * NS_PER_MS,
		.latency_groups = trace_groups_of(config->traces),
		.process_totals = config->share || needs & NEED_PROCESSES,
		.share = config->share,
		.attach = config->attach,
	};
	if (options->groups >> GROUP_BLOCK_DONE & 1) /* merges, where there is a probe of them */
		options->groups |= 1u << GROUP_BLOCK_MERGE;
	options->groups |= trace_more_groups_of(config->traces);
}
