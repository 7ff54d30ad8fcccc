/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/live_options.h"
#include "base/clock.h"
#include "kernel/probe_table.h"
#include "kernel/program_cache.h"
#include "live/trace_table.h"
#include "proc/syscalls.h"
#include "sample/needs_table.h"

#include <stdlib.h>
#include <string.h>

#define IRQ_GROUPS                                                                            \
	(GROUP_BIT(GROUP_HARDIRQ) | GROUP_BIT(GROUP_HARDIRQ_END) | GROUP_BIT(GROUP_SOFTIRQ) | \
	 GROUP_BIT(GROUP_SOFTIRQ_END))
#define CLOCK_RATE_MIN_HZ 20 /* rate of the perf clock, so that its look is never old */

/* Probe groups and parts of records for each enum need_probe. Another program of a thread whose
 * facts are kept shows in its new name. */
static const struct {
	unsigned int probes;
	uint64_t groups;
	unsigned int parts;
} rows[] = {
	{KEEPS_REGISTERS, GROUP_BIT(GROUP_REQUEST), 1u << PART_REGISTERS},
	{KEEPS_TOTALS, 0, 1u << PART_TOTALS},
	{KEEPS_WAKER, 0, 1u << PART_WAKER},
	{KEEPS_STACKS, 0, 1u << PART_STACKS},
	{KEEPS_PROGRAM, GROUP_BIT(GROUP_STACK), 1u << PART_PROGRAM},
	{KEEPS_WAKES, 0, 1u << PART_WAKES},
	{LOOKS_AT_MEMORY, 0, 1u << PART_MEMORY},
	{SEES_REQUESTS,
	 GROUP_BIT(GROUP_BLOCK_QUEUE) | GROUP_BIT(GROUP_BLOCK_ISSUE) | GROUP_BIT(GROUP_BLOCK_DONE),
	 0},
	{SEES_CALLS, GROUP_BIT(GROUP_CALL), 0},
	{SEES_RENAMES, GROUP_BIT(GROUP_NAME), 0},
	{SEES_IRQS, IRQ_GROUPS, 0},
	{KEEPS_EXECS, 0, 1u << PART_PROGRAM},
};

/* Groups that are always attached: states, and records to be read in the next scan; a thread before
 * its first switch; tids that change hands, and dead threads, which would stay for a second; a
 * switch that was missed, and ON or RQ at the start. */
#define GROUPS_ALWAYS                                                             \
	(GROUP_BIT(GROUP_SWITCH) | GROUP_BIT(GROUP_WAKE) | GROUP_BIT(GROUP_NEW) | \
	 GROUP_BIT(GROUP_EXEC) | GROUP_BIT(GROUP_EXIT) | GROUP_BIT(GROUP_CLOCK))

static unsigned int probes_of(uint64_t needs)
{
	unsigned int probes = needs & NEEDS_KEPT ? SEES_RENAMES : 0;

	for (size_t i = 0; i < needs_row_count; i++)
		if (needs & needs_rows[i].need)
			probes |= needs_rows[i].probes;
	return probes;
}

uint64_t live_groups_of(uint64_t needs)
{
	unsigned int probes = probes_of(needs);
	uint64_t groups = GROUPS_ALWAYS;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (probes & rows[i].probes)
			groups |= rows[i].groups;
	return groups;
}

unsigned int live_parts_of(uint64_t needs)
{
	unsigned int probes = probes_of(needs), parts = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (probes & rows[i].probes)
			parts |= rows[i].parts;
	return parts;
}

/* Returns the ids of -p if they stay the same, else NULL: a name is looked for again, and
 * descendants come. */
static const char *pids_fixed(const struct live_config *config)
{
	const char *text = config->process;

	return text && !config->descendants && !text[strspn(text, "0123456789,")] ? text : NULL;
}

/* Returns the directory of the cache of programs; NULL: none. */
static const char *cache_path(const struct live_config *config)
{
	const char *named = getenv("TSNAP_CACHE");

	if (config->no_cache || (named && !*named))
		return NULL;
	return named ? named : PROGRAM_CACHE_PATH;
}

/* Finds the few calls that a filter wants, as in --trace syscalls --filter syscall=fsync: the
 * others then cost neither a look at the clock nor a histogram. */
static struct trace_calls calls_wanted(const struct live_config *config,
				       const struct filter *filter)
{
	struct trace_calls calls = {0};
	struct sample sample = *sample_absent();

	/* opens are looked at by what syscall_enter.bpf.c noted, too */
	if (!filter || !(config->traces >> LATENCY_SYSCALLS & 1) ||
	    config->traces & (1u << LATENCY_OPENS | 1u << LATENCY_OPENED))
		return calls;
	for (uint32_t number = 0; number < TRACE_CALLS_LISTED; number++) {
		sample.call.nr = number;
		sample.call.name = syscall_name(number, false);
		if (expression_eval(&filter->expression, &sample, NEED_SYSCALL) == VERDICT_REFUSED)
			continue;
		if (calls.count == TRACE_CALLS_MAX)
			return (struct trace_calls){0};
		calls.numbers[calls.count++] = number;
	}
	return calls;
}

void live_kernel_options(const struct live_config *config, const struct filter *filter,
			 uint64_t needs, struct kernel_options *options)
{
	/* samplers that attach later may need more */
	const uint64_t wanted = config->share ? needs | ~NEEDS_PROBED : needs;

	*options = (struct kernel_options){
		.types_choice = config->kernel_types,
		.btf_file = config->btf_file,
		.offsets_file = config->offsets_file,
		.cache_path = cache_path(config),
		.programs_file = config->programs_file,
		.write_programs = config->write_programs,
		.without = config->without,
		.threads_max = config->max_threads,
		.rate_hz =
			config->rate_hz > CLOCK_RATE_MIN_HZ ? config->rate_hz : CLOCK_RATE_MIN_HZ,
		.groups = live_groups_of(wanted) | trace_groups_of(config->traces),
		.parts = live_parts_of(wanted),
		.latency_kinds = config->traces,
		.trace_pids = pids_fixed(config),
		.trace_tids = config->threads,
		.trace_calls = calls_wanted(config, filter),
		.own = config->own,
		.slower_ns = (uint64_t)config->slower_us * NS_PER_US,
		.latency_groups = trace_groups_of(config->traces & ~config->traces_unasked),
		.process_totals = config->share || needs & NEED_PROCESSES,
		.share = config->share,
		.attach = config->attach,
	};
	if (options->groups >> GROUP_BLOCK_DONE & 1) /* merges, where there is a probe of them */
		options->groups |= GROUP_BIT(GROUP_BLOCK_MERGE);
	options->groups |= trace_more_groups_of(config->traces) |
			   live_groups_of(trace_needs_of(config->traces));
	options->parts |= live_parts_of(trace_needs_of(config->traces));
}
