/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/program_text.h"
#include "kernel/record.h"
#include "kernel/registers.h"
#include "kernel/work_dir.h"

#include <limits.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

const char *embedded_text(const char *name)
{
	for (const struct embedded_file *file = embedded_files; file->name; file++)
		if (!strcmp(strrchr(file->name, '/') + 1, name))
			return file->text;
	return NULL;
}

static void fragment_add(const char *file, struct text *to)
{
	/* errors of the compiler then name the real file */
	text_add_format(to, "#line 1 \"bpf_text/%s\"\n", file);
	text_add_string(to, embedded_text(file));
}

static void knob_add(const char *name, uint32_t value, struct text *to)
{
	text_add_format(to, "#define %s %u\n", name, value);
}

/* Returns twice as many entries as threads, so that few share one; a power of two. */
static uint32_t near_max(uint32_t threads_max)
{
	uint32_t entries = 1;

	while (entries < threads_max * 2)
		entries *= 2;
	return entries;
}

uint32_t program_near_threads(uint32_t threads_max)
{
	return near_max(threads_max) / 2;
}

static bool measures_exec(const struct program_knobs *knobs)
{
	return knobs->latency_kinds >> LATENCY_EXEC & 1;
}

static bool measures_opens(const struct program_knobs *knobs)
{
	return knobs->latency_kinds & (1u << LATENCY_OPENS | 1u << LATENCY_OPENED);
}

static bool measures_incidents(const struct program_knobs *knobs)
{
	return knobs->latency_kinds >> LATENCY_INCIDENTS & 1;
}

static bool measures_dns(const struct program_knobs *knobs)
{
	return knobs->latency_kinds >> LATENCY_DNS & 1;
}

static bool reports_events(const struct program_knobs *knobs)
{
	return knobs->slower_ns || knobs->latency_kinds & LATENCY_EVENTS_ONLY ||
	       (knobs->own && knobs->own->events);
}

static bool measures_work(const struct program_knobs *knobs)
{
	return knobs->latency_kinds >> LATENCY_WORK & 1 && knobs->thread_slots;
}

#define OPENAT2_NUMBER 437 /* of all machines; headers before 5.6 lack it */

/* Limit of ids that probes compare: each is a comparison at each event, and the sampler knows them
 * as well. */
#define TRACE_IDS_MAX 8

static bool few_ids(const char *ids)
{
	int count = 1;

	for (const char *at = ids; at && *at; at++)
		count += *at == ',';
	return ids && count <= TRACE_IDS_MAX;
}

/* Adds "(0 | is_same((identity).tgid, 12u))"; 1 where all are wanted. */
static void ids_add(const char *member, const char *ids, struct text *to)
{
	char *end;

	if (!few_ids(ids)) {
		text_add_char(to, '1');
		return;
	}
	text_add_string(to, "(0");
	for (;; ids = end + 1) {
		text_add_format(to, " | is_same((identity).%s, %uu)", member,
				(unsigned int)strtoul(ids, &end, 10));
		if (*end != ',')
			break;
	}
	text_add_char(to, ')');
}

static void wanted_add(const struct program_knobs *knobs, struct text *to)
{
	/* the verifiers of 4.9 to 4.13 give up on a program that has the comparisons, too */
	if (!knobs->read_into_map || (!few_ids(knobs->trace_pids) && !few_ids(knobs->trace_tids)))
		return;
	text_add_string(to, "#define TRACE_WANTED(identity) (");
	ids_add("tgid", knobs->trace_pids, to);
	text_add_string(to, " && ");
	ids_add("tid", knobs->trace_tids, to);
	text_add_string(to, ")\n");
}

static void calls_wanted_add(const struct program_knobs *knobs, struct text *to)
{
	/* as in wanted_add() */
	if (!knobs->read_into_map || !knobs->trace_calls.count)
		return;
	text_add_format(to, "#define CALL_WANTED(call) ((call) >= %u || (0", TRACE_CALLS_LISTED);
	for (unsigned int i = 0; i < knobs->trace_calls.count; i++)
		text_add_format(to, " | is_same(call, %uu)", knobs->trace_calls.numbers[i]);
	text_add_string(to, "))\n");
}

/* Adds the numbers of system calls that programs look at. */
static void calls_add(struct text *to)
{
	knob_add("CALL_ACCEPT", SYS_accept, to);
	knob_add("CALL_ACCEPT4", SYS_accept4, to);
#ifdef SYS_open
	knob_add("CALL_OPEN", SYS_open, to);
	knob_add("CALL_CREAT", SYS_creat, to);
#endif
	knob_add("CALL_OPENAT", SYS_openat, to);
	knob_add("CALL_OPENAT2", OPENAT2_NUMBER, to);
}

static void knobs_add(const struct probe_plan *plan, const struct program_knobs *knobs,
		      struct text *to)
{
	knob_add("THREADS_MAX", knobs->threads_max, to);
	knob_add("KERNEL_STACK_REGISTERS", knobs->stack_registers, to);
	knob_add("CPUS_MAX", knobs->cpus_max, to);
	for (int part = 0; part < PART_COUNT; part++)
		if (knobs->parts >> part & 1)
			knob_add(record_part_knobs[part], 1, to);
	if (knobs->read_into_map)
		knob_add("READ_INTO_MAP", 1, to);
	if (knobs->latency_kinds) {
		knob_add("LATENCY_KINDS", knobs->latency_kinds, to);
		knob_add("KERNEL_THREAD_FLAGS", knobs->thread_flags, to);
		calls_add(to);
		knob_add("LATENCY_TURN_FIRST", knobs->turn_first, to);
		wanted_add(knobs, to);
		calls_wanted_add(knobs, to);
	}
	if (reports_events(knobs))
		knob_add("EVENTS", 1, to);
	if (measures_exec(knobs))
		knob_add("EVENTS_EXEC", 1, to);
	if (measures_opens(knobs))
		knob_add("EVENTS_OPEN", 1, to);
	if (knobs->read_into_map && knobs->probe_read_kernel)
		knob_add("READ_USER_STR", 1, to);
	if (knobs->own && knobs->own->events)
		knob_add("PROBE_EVENTS", 1, to);
	if (knobs->own && knobs->own->stacks)
		knob_add("PROBE_STACKS", 1, to);
	if (knobs->slower_ns)
		text_add_format(to, "#define SLOWER_NS %lluull\n",
				(unsigned long long)knobs->slower_ns);
	if (knobs->latency_kinds && knobs->registers_kept & REGISTERS_MARKED)
		knob_add("REGISTERS_MARKED", 1, to);
	if (plan->chosen[GROUP_BLOCK_ISSUE])
		knob_add("BLOCK_ARGUMENT", knobs->block_argument, to);
	if (knobs->thread_slots) {
		knob_add("THREAD_SLOTS", 1, to);
		knob_add("NEAR_MAX", near_max(knobs->threads_max), to);
	}
	if (knobs->process_totals)
		knob_add("PROCESS_TOTALS", 1, to);
	if (knobs->pids.translated) {
		text_add_format(to, "#define PID_NAMESPACE 0x%llxull\n",
				(unsigned long long)knobs->pids.address);
		knob_add("PID_NAMESPACE_LEVEL", knobs->pids.level, to);
		knob_add("PID_NUMBER_BYTES", knobs->pids.number_bytes, to);
	}
	if (!knobs->probe_read_kernel)
		text_add_string(to, "#define bpf_probe_read_kernel bpf_probe_read\n"
				    "#define bpf_probe_read_user bpf_probe_read\n");
	for (int group = 0; group < GROUP_COUNT; group++)
		if (plan->chosen[group] && plan->chosen[group]->knob)
			knob_add(plan->chosen[group]->knob, 1, to);
}

static void fragments_add(const struct probe_plan *plan, const struct program_knobs *knobs,
			  struct text *to)
{
	fragment_add("thread_state.h", to);
	fragment_add("kernel_fields.h", to);
	fragment_add("maps.bpf.c", to);
	fragment_add("processes.bpf.c", to);
	if (knobs->latency_kinds || plan->chosen[GROUP_BLOCK_ISSUE]) {
		fragment_add("latency.h", to);
		fragment_add("bucket.bpf.c", to);
	}
	if (knobs->latency_kinds) {
		fragment_add("latency.bpf.c", to);
		fragment_add("throttles.bpf.c", to);
	}
	if (reports_events(knobs)) {
		fragment_add("events.h", to);
		fragment_add("events.bpf.c", to);
	}
	if (measures_exec(knobs))
		fragment_add("exec_event.bpf.c", to);
	if (measures_opens(knobs))
		fragment_add("open_event.bpf.c", to);
	if (measures_incidents(knobs))
		fragment_add("incident.bpf.c", to);
	if (measures_dns(knobs))
		fragment_add("dns.bpf.c", to);
	if (measures_work(knobs) || own_probes_report(knobs->own)) {
		fragment_add("work.h", to);
		fragment_add("split.bpf.c", to);
	}
	if (measures_work(knobs))
		fragment_add("work.bpf.c", to);
	if (knobs->parts >> PART_WAKES & 1)
		fragment_add("wakes.h", to);
	if (plan->chosen[GROUP_BLOCK_ISSUE]) {
		fragment_add("block.h", to);
		fragment_add("block.bpf.c", to);
	}
	if (plan->chosen[GROUP_HARDIRQ] || plan->chosen[GROUP_SOFTIRQ]) {
		fragment_add("irq.h", to);
		fragment_add("irq.bpf.c", to);
	}
	for (int group = 0; group < GROUP_OWN; group++) {
		char file[64];

		if (!plan->chosen[group])
			continue;
		snprintf(file, sizeof(file), "%s.bpf.c", plan->chosen[group]->name);
		fragment_add(file, to);
	}
	if (!knobs->own || !knobs->own->count)
		return;
	fragment_add("probe.h", to);
	fragment_add("probe.bpf.c", to);
	if (own_probes_report(knobs->own))
		fragment_add("probe_report.bpf.c", to);
	if (own_probes_hold(knobs->own))
		fragment_add("probe_context.bpf.c", to);
	text_add_string(to, "#line 1 \"tsnap's programs for --probe and --context\"\n");
	for (unsigned int i = 0; i < knobs->own->count; i++)
		if (!knobs->own->items[i].detached)
			own_item_text_write(&knobs->own->items[i], i, to);
}

void program_text_write(const struct probe_plan *plan, const struct field_layout *layout,
			const struct program_knobs *knobs, struct text *to)
{
	text_add_string(to, "#line 1 \"tsnap's generated header\"\n");
	knobs_add(plan, knobs, to);
	text_add_string(to, registers_text);
	field_header_write(layout, to);
	fragments_add(plan, knobs, to);
}

/* Files that libbcc's own headers include; found with 0.26, by compiling until none was missing. */
static const struct {
	const char *name, *text;
} header_rows[] = {
	{"include/linux/kconfig.h", "#define CONFIG_BPF_SYSCALL 1\n"},
	{"include/linux/types.h",
	 "#ifndef TSNAP_TYPES_H\n#define TSNAP_TYPES_H\n"
	 "typedef signed char __s8; typedef unsigned char __u8;\n"
	 "typedef short __s16; typedef unsigned short __u16;\n"
	 "typedef int __s32; typedef unsigned int __u32;\n"
	 "typedef long long __s64; typedef unsigned long long __u64;\n"
	 "typedef __s8 s8; typedef __u8 u8; typedef __s16 s16; typedef __u16 u16;\n"
	 "typedef __s32 s32; typedef __u32 u32; typedef __s64 s64; typedef __u64 u64;\n"
	 "typedef __u16 __le16; typedef __u32 __le32; typedef __u64 __le64;\n"
	 "typedef __u16 __be16; typedef __u32 __be32; typedef __u64 __be64;\n"
	 "typedef __u16 __sum16; typedef __u32 __wsum;\n"
	 "typedef unsigned long size_t; typedef long ssize_t; typedef int pid_t;\n"
	 "typedef unsigned long uintptr_t; typedef _Bool bool;\n"
	 "typedef u32 dev_t; typedef u64 sector_t;\n"
	 "enum { false = 0, true = 1 };\n"
	 "#define __bitwise\n"
	 "#define __aligned_u64 __u64 __attribute__((aligned(8)))\n"
	 "#define NULL ((void *)0)\n"
	 "#endif\n"},
	{"include/linux/bpf_common.h", ""},
	{"include/linux/log2.h", ""},
	{"include/linux/ptrace.h", ""},
	{"include/asm/page.h", ""},
	{"include/uapi/linux/bpf.h", ""},
	{"include/uapi/linux/if_packet.h", ""},
	{"include/uapi/linux/ptrace.h", ""},
};

int program_headers_write(const char *work_dir, uint32_t kernel_code, struct error *e)
{
	char tree[PATH_MAX], version[256];
	int result;

	snprintf(tree, sizeof(tree), "%s/types", work_dir);
	for (size_t i = 0; i < sizeof(header_rows) / sizeof(header_rows[0]); i++) {
		result = work_dir_write(tree, header_rows[i].name, header_rows[i].text, e);
		if (result)
			return result;
	}
	snprintf(version, sizeof(version),
		 "#define LINUX_VERSION_CODE %u\n"
		 "#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + "
		 "((c) > 255 ? 255 : (c)))\n",
		 kernel_code);
	result = work_dir_write(tree, "include/linux/version.h", version, e);
	if (!result)
		setenv("BCC_KERNEL_SOURCE", tree, 1);
	return result;
}

void *program_compile(const struct bcc_library *bcc, const struct program_knobs *knobs,
		      const struct text *text)
{
	/* Nobody reads debug information, which takes a fifteenth of the time. libbcc optimises
	 * what clang has optimised already: once is enough, but programs may jump backwards. */
	const char *flags[] = {"-Wno-unused-function", "-g0", "-Xclang", "-disable-llvm-passes"};

	if (!knobs->thread_slots)
		bcc_library_keep_order(bcc);
	return bcc->bpf_module_create_c_from_string(text_string(text), 0, flags,
						    knobs->thread_slots ? 4 : 2, true, NULL);
}
