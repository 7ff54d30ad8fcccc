/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "plans.h"
#include "kernel/host.h"
#include "kernel/record.h"
#include "kernel/registers.h"

#include <stdio.h>
#include <string.h>

/* One level below the first pid namespace. */
#define PID_SPACE_BELOW                                                                    \
	(struct pid_namespace)                                                             \
	{                                                                                  \
		.translated = true, .address = ~0ull << 40, .level = 1, .number_bytes = 16 \
	}

const struct plan_kind plan_kinds[] = {
	{"typed tracepoints",
	 1u << PROBE_TYPED_TRACEPOINT | 1u << PROBE_RAW_TRACEPOINT | 1u << PROBE_LOOK, false, 0,
	 false},
	{"raw tracepoints", 1u << PROBE_RAW_TRACEPOINT | 1u << PROBE_LOOK, true, 0, false},
	{"raw tracepoints, the first", 1u << PROBE_RAW_TRACEPOINT, false,
	 GROUP_BIT(GROUP_BLOCK_QUEUE) | GROUP_BIT(GROUP_BLOCK_ISSUE), false},
	{"raw tracepoints, before 5.9", 1u << PROBE_RAW_TRACEPOINT | 1u << PROBE_KPROBE, true,
	 GROUP_BIT(GROUP_BLOCK_QUEUE) | GROUP_BIT(GROUP_BLOCK_ISSUE) | GROUP_BIT(GROUP_BLOCK_MERGE),
	 false},
	{"tracepoints", 1u << PROBE_TRACEPOINT | 1u << PROBE_PERF_CLOCK, false, 0, false},
	{"typed tracepoints, quotas",
	 1u << PROBE_TYPED_TRACEPOINT | 1u << PROBE_LOOK | 1u << PROBE_KPROBE, false,
	 GROUP_BIT(GROUP_SWITCH) | GROUP_BIT(GROUP_THROTTLE) | GROUP_BIT(GROUP_UNTHROTTLE), false},
	{"kprobes", 1u << PROBE_KPROBE | 1u << PROBE_PERF_CLOCK, false,
	 ~GROUP_BIT(GROUP_BLOCK_MERGE), false},
	{"kprobes, before 3.19", 1u << PROBE_KPROBE, true, GROUP_BIT(GROUP_SWITCH), true},
};

const size_t plan_kind_count = sizeof(plan_kinds) / sizeof(plan_kinds[0]);

void plan_fill(const struct plan_kind *kind, struct probe_plan *plan)
{
	memset(plan, 0, sizeof(*plan));
	for (size_t i = 0; i < probe_row_count; i++)
		if (kind->kinds >> probe_rows[i].kind & 1 &&
		    (!kind->groups || kind->groups >> probe_rows[i].gives & 1) &&
		    (kind->last || !plan->chosen[probe_rows[i].gives]))
			plan->chosen[probe_rows[i].gives] = &probe_rows[i];
}

void plan_choose(const struct plan_kind *kind, const struct program_knobs *knobs,
		 struct probe_plan *plan)
{
	plan_fill(kind, plan);
	if (!knobs->thread_slots)
		plan->chosen[GROUP_REQUEST] = plan->chosen[GROUP_STACK] = NULL;
	if (!knobs->parts)
		plan->chosen[GROUP_REQUEST] = NULL;
}

/* Knobs of a text as bits. */
enum {
	READ_INTO_MAP = 1,
	READ_KERNEL = 2,
	PIDS = 4,
	SLOTS = 8,
	TRACE = 16,
	TOTALS = 32,
	SLOWER = 64,
	NOTHING_KEPT = 128,
	FEW_IDS = 256, /* ids to trace: as many as programs compare with */
	WAKES = 512,   /* wake-ups of --critical-path */
};

#define NEW_KERNEL (READ_INTO_MAP | READ_KERNEL | SLOTS)
#define BEFORE_SLOTS (READ_INTO_MAP | READ_KERNEL)
#define ALL_TOLD (TRACE | TOTALS | SLOWER)
#define EVERY_KIND ((1u << LATENCY_KIND_COUNT) - 1)

/* Knobs that the kernels of a time offer, with what users request. The first five rows are enough
 * for an offsets file. Old kernels have each kind of --trace alone, too: their verifiers have
 * refused one kind's program and accepted that of all. */
const struct knob_choice knob_choices[] = {
	{NEW_KERNEL | PIDS, 0},
	{NEW_KERNEL | PIDS | TRACE, 0},
	{NEW_KERNEL, 0},
	{BEFORE_SLOTS | PIDS, 0},
	{BEFORE_SLOTS, 0},
	{0, 0},
	{READ_INTO_MAP, 0},
	{READ_KERNEL, 0},
	{PIDS, 0},
	{PIDS | READ_INTO_MAP, 0},
	{NEW_KERNEL | TRACE, 0},
	{TRACE, 0},
	{TRACE | READ_INTO_MAP, 0},
	{NEW_KERNEL | PIDS | TOTALS, 0},
	{NEW_KERNEL | TOTALS, 0},
	{BEFORE_SLOTS | PIDS | TOTALS, 0},
	{BEFORE_SLOTS | TOTALS, 0},
	{TOTALS, 0},
	{TOTALS | READ_INTO_MAP, 0},
	{NEW_KERNEL | PIDS | TRACE | SLOWER, 0},
	{TRACE | SLOWER, 0},
	{TRACE | SLOWER | READ_INTO_MAP, 0},
	{NEW_KERNEL | PIDS | NOTHING_KEPT, 0},
	{NEW_KERNEL | NOTHING_KEPT, 0},
	{BEFORE_SLOTS | NOTHING_KEPT, 0},
	{NOTHING_KEPT, 0},
	{TRACE | TOTALS, 0},
	{ALL_TOLD | PIDS | FEW_IDS | READ_INTO_MAP, 0},
	{ALL_TOLD | PIDS | FEW_IDS | NEW_KERNEL, 0},
	{ALL_TOLD, 1u << LATENCY_RUNQ},
	{ALL_TOLD, 1u << LATENCY_OFFCPU},
	{ALL_TOLD, 1u << LATENCY_BLOCK},
	{ALL_TOLD, 1u << LATENCY_SYSCALLS},
	{ALL_TOLD, 1u << LATENCY_RUNQ | 1u << LATENCY_OFFCPU},
	{TRACE, 1u << LATENCY_RUNQ | 1u << LATENCY_OFFCPU},
	{TRACE, 1u << LATENCY_EXEC},
	{TRACE, 1u << LATENCY_CONNECTIONS},
	{TRACE, 1u << LATENCY_OPENS},
	{TRACE, 1u << LATENCY_INCIDENTS},
	{ALL_TOLD | PIDS, 1u << LATENCY_RUNQ},
	{ALL_TOLD | PIDS, 1u << LATENCY_OFFCPU},
	{ALL_TOLD | PIDS, 1u << LATENCY_SYSCALLS},
	{ALL_TOLD | READ_INTO_MAP, 1u << LATENCY_RUNQ},
	{ALL_TOLD | READ_INTO_MAP, 1u << LATENCY_OFFCPU},
	{ALL_TOLD | READ_INTO_MAP, 1u << LATENCY_BLOCK},
	{ALL_TOLD | READ_INTO_MAP, 1u << LATENCY_SYSCALLS},
	{ALL_TOLD | READ_INTO_MAP, 1u << LATENCY_RUNQ | 1u << LATENCY_OFFCPU},
	{TRACE | READ_INTO_MAP, 1u << LATENCY_RUNQ | 1u << LATENCY_OFFCPU},
	{TRACE | READ_INTO_MAP, 1u << LATENCY_EXEC},
	{TRACE | READ_INTO_MAP, 1u << LATENCY_CONNECTIONS},
	{TRACE | READ_INTO_MAP, 1u << LATENCY_OPENS},
	{TRACE | READ_INTO_MAP, 1u << LATENCY_INCIDENTS},
	{TRACE, 1u << LATENCY_IRQ},
	{TRACE | READ_INTO_MAP, 1u << LATENCY_IRQ},
	{TRACE, 1u << LATENCY_DNS},
	{TRACE | READ_INTO_MAP, 1u << LATENCY_DNS},
	{NEW_KERNEL | WAKES, 0},
	{NEW_KERNEL | PIDS | WAKES, 0},
};

const size_t knob_choice_count = sizeof(knob_choices) / sizeof(knob_choices[0]);

static unsigned int parts_of(int bits)
{
	unsigned int all = (1u << PART_COUNT) - 1;

	return bits & NOTHING_KEPT ? 0 : bits & WAKES ? all : all & ~(1u << PART_WAKES);
}

struct program_knobs knobs_of(const struct knob_choice *choice)
{
	const char *ids = choice->bits & FEW_IDS ? "1,2,3,4,5,6,7,8" : NULL;
	const bool traced = choice->bits & TRACE;

	return (struct program_knobs){
		.threads_max = 1024,
		.stack_registers = STACK_REGISTERS,
		.read_into_map = choice->bits & READ_INTO_MAP,
		.probe_read_kernel = choice->bits & READ_KERNEL,
		.thread_slots = choice->bits & SLOTS,
		.process_totals = choice->bits & TOTALS,
		.parts = parts_of(choice->bits),
		.turn_first = 1,
		.thread_flags = kernel_thread_flags_of(
			choice->bits & (READ_KERNEL | SLOTS) ? KERNEL_CODE(6, 4) : 0),
		.cpus_max = 4,
		.latency_kinds = !traced	 ? 0
				 : choice->kinds ? choice->kinds
						 : EVERY_KIND,
		.slower_ns = choice->bits & SLOWER ? 20000000 : 0,
		.registers_kept = traced ? REGISTERS_MARKED : 0,
		.block_argument = !(choice->bits & SLOTS),
		.trace_pids = ids,
		.trace_tids = ids,
		.trace_calls = {ids ? TRACE_CALLS_MAX : 0, {0, 1, 2, 3, 4, 5, 6, 7}},
		.pids = choice->bits & PIDS ? PID_SPACE_BELOW : (struct pid_namespace){0},
	};
}

bool plan_is_old(const struct plan_kind *kind, const struct knob_choice *choice)
{
	if (kind->kinds >> PROBE_TYPED_TRACEPOINT & 1 || choice->bits & (READ_KERNEL | SLOTS))
		return false;
	return choice->bits & READ_INTO_MAP || !(kind->kinds >> PROBE_RAW_TRACEPOINT & 1);
}

/* Returns the oldest kernel that may get a text with these knobs and that probe. */
uint32_t release_oldest(const struct program_knobs *knobs, const struct probe_row *row)
{
	uint32_t release = feature_rows[row->wants].since;

	if (release < FEATURE_SINCE(4, 9))
		release = FEATURE_SINCE(4, 9);
	if (knobs->read_into_map && release < feature_rows[FEATURE_READ_INTO_MAP].since)
		release = feature_rows[FEATURE_READ_INTO_MAP].since;
	if (knobs->probe_read_kernel && release < feature_rows[FEATURE_PROBE_READ_KERNEL].since)
		release = feature_rows[FEATURE_PROBE_READ_KERNEL].since;
	if (knobs->thread_slots && release < feature_rows[FEATURE_THREAD_SLOTS].since)
		release = feature_rows[FEATURE_THREAD_SLOTS].since;
	return release;
}

void plan_words(const struct plan_kind *kind, const struct program_knobs *knobs,
		char words[PLAN_WORDS_SIZE])
{
	char kinds[32] = "";

	if (knobs->latency_kinds && knobs->latency_kinds != EVERY_KIND)
		snprintf(kinds, sizeof(kinds), ", kinds 0x%x", knobs->latency_kinds);
	snprintf(words, PLAN_WORDS_SIZE, "%s%s%s%s%s%s%s%s%s%s%s%s", kind->name,
		 knobs->pids.translated ? ", translated pids" : "",
		 knobs->read_into_map ? ", read_into_map" : "",
		 knobs->probe_read_kernel ? ", probe_read_kernel" : "",
		 knobs->thread_slots ? ", thread_slots" : "", knobs->latency_kinds ? ", trace" : "",
		 knobs->process_totals ? ", process_totals" : "",
		 knobs->slower_ns ? ", slower" : "", knobs->parts ? "" : ", nothing kept",
		 knobs->parts >> PART_WAKES & 1 ? ", wakes" : "",
		 knobs->trace_pids ? ", few ids" : "", kinds);
}
