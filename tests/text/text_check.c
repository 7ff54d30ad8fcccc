/* SPDX-License-Identifier: GPL-2.0-or-later */
/* text_check [--offsets FILE | --budget FILE | --export FILE]: compiles the BPF text with the
 * libbcc at hand, for every plan and every choice of knobs, and holds each program to what the
 * oldest kernel of its plan takes: 4.9's instruction set and limits, no helper newer than the
 * plan's facts. And the offsets in the programs must be those of the layout: libbcc's compiler has
 * put members elsewhere than offsetof said.
 *
 * The layout is made up, with the newest names of members and what kernels since 5.5 offer. With
 * --export FILE it is one with the oldest names, for what kernels before 5.5 offer, and the
 * programs are written to FILE for program_loader. With --offsets FILE (tsnap --write-offsets) it
 * is that one, of whatever kernel; that of the running one must equal its BTF. With --budget FILE
 * no program may have 5 % more or fewer instructions than it says. The last line is the sum; exit
 * code 77 where BPF maps can't be made, or libbcc can't be loaded.
 */
#include "base/text.h"
#include "instructions.h"
#include "program_export.h"
#include "program_file.h"
#include "visits.h"
#include "kernel/bcc_library.h"
#include "kernel/bpf_call.h"
#include "kernel/btf_ids.h"
#include "kernel/fact_table.h"
#include "kernel/host.h"
#include "kernel/host_file.h"
#include "kernel/probe_table.h"
#include "kernel/program_text.h"
#include "kernel/record.h"
#include "kernel/type_source.h"
#include "kernel/version_code.h"
#include "kernel/work_dir.h"

#include <bcc/bcc_proc.h>
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#define INSTRUCTIONS_MAX 4096 /* BPF_MAXINSNS, all that 4.9 takes */
#define STACK_BYTES_MAX 512   /* MAX_BPF_STACK */
#define LOOPS_SINCE FACT_SINCE(5, 3)
#define SIZES_VARY_SINCE FACT_SINCE(4, 11)
#define SIZES_ZERO_SINCE FACT_SINCE(4, 16)
#define VISITS_UNBOUND_SINCE FACT_SINCE(5, 2)
/* As counted by visits.h. With 29 870 of them 4.9 visits 90 972 of 98 304, and of programs that it
 * refused 28 963 to 40 153 are counted; with 53 797 of them 4.14 visits 51 750 of 131 072. */
#define VISITS_MAX_4_9 31000
#define VISITS_MAX_4_14 100000
#define OLDEST_KERNEL (4u << 16 | 9u << 8 | 255u)
#define STACK_REGISTERS 16216 /* not the offset of any field */

/* One level below the first pid namespace. */
#define PID_SPACE_BELOW                                                                    \
	(struct pid_space)                                                                 \
	{                                                                                  \
		.translated = true, .address = ~0ull << 40, .level = 1, .number_bytes = 16 \
	}

static int passed, failed;

static bool __attribute__((format(printf, 2, 3))) expect(bool right, const char *words, ...)
{
	va_list list;

	if (right) {
		passed++;
		return true;
	}
	failed++;
	va_start(list, words);
	printf("FAILED: ");
	vprintf(words, list);
	printf("\n");
	va_end(list);
	return false;
}

/* The release that a helper came with; include/uapi/linux/bpf.h of 4.9 ends with number 41. */
static uint32_t helper_since(int helper)
{
	if (helper <= BPF_FUNC_set_hash_invalid)
		return FACT_SINCE(4, 9);
	if (helper == BPF_FUNC_probe_read_kernel || helper == BPF_FUNC_probe_read_user)
		return fact_rows[FACT_PROBE_READ_KERNEL].since;
	if (helper == BPF_FUNC_map_push_elem || helper == BPF_FUNC_map_pop_elem)
		return FACT_SINCE(4, 20);
	return UINT32_MAX;
}

/* The rows of a plan: for each group one of this kind, or of none. */
struct plan_kind {
	const char *name;
	unsigned int kinds;  /* bits 1 << PROBE_x */
	bool last;	     /* of several rows of a kind the last, not the first */
	unsigned int groups; /* these only, bits 1 << GROUP_x; 0: all */
};

static const struct plan_kind plan_kinds[] = {
	{"typed tracepoints",
	 1u << PROBE_TYPED_TRACEPOINT | 1u << PROBE_RAW_TRACEPOINT | 1u << PROBE_LOOK, false, 0},
	{"raw tracepoints", 1u << PROBE_RAW_TRACEPOINT | 1u << PROBE_LOOK, true, 0},
	{"raw tracepoints, the first", 1u << PROBE_RAW_TRACEPOINT, false,
	 1u << GROUP_BLOCK_QUEUE | 1u << GROUP_BLOCK_ISSUE},
	{"raw tracepoints, before 5.9", 1u << PROBE_RAW_TRACEPOINT | 1u << PROBE_KPROBE, true,
	 1u << GROUP_BLOCK_QUEUE | 1u << GROUP_BLOCK_ISSUE | 1u << GROUP_BLOCK_MERGE},
	{"tracepoints", 1u << PROBE_TRACEPOINT | 1u << PROBE_PERF_CLOCK, false, 0},
	{"kprobes", 1u << PROBE_KPROBE | 1u << PROBE_PERF_CLOCK, false, ~(1u << GROUP_BLOCK_MERGE)},
};

#define PLAN_COUNT (sizeof(plan_kinds) / sizeof(plan_kinds[0]))

static void plan_fill(const struct plan_kind *kind, struct probe_plan *plan)
{
	memset(plan, 0, sizeof(*plan));
	for (size_t i = 0; i < probe_row_count; i++)
		if (kind->kinds >> probe_rows[i].kind & 1 &&
		    (!kind->groups || kind->groups >> probe_rows[i].gives & 1) &&
		    (kind->last || !plan->chosen[probe_rows[i].gives]))
			plan->chosen[probe_rows[i].gives] = &probe_rows[i];
}

/* Which fields some program was seen to read. */
struct fields_seen {
	bool field[FIELD_MAX];
};

/* Where a program reads the field: a number of the second pid namespace, and until 4.18 the pointer
 * in pids[0], lie 16 bytes behind. */
static uint32_t read_offset(const struct field_layout *layout, size_t field)
{
	bool old_pids = !strcmp(field_rows[field].names[0], "thread_pid") && layout->name[field];

	return layout->offset[field] + (!field_rows[field].bytes || old_pids ? 16 : 0);
}

static bool is_registers(int64_t at)
{
#define PIECE_AT(to, from, count) || at == STACK_REGISTERS + 8 * (from)
	return at == STACK_REGISTERS + 8 * THREAD_STACK_WORD ||
	       at == STACK_REGISTERS + 8 * THREAD_CALL_FROM THREAD_REGISTER_PIECES(PIECE_AT)
						       STACK_REGISTER_PIECES(PIECE_AT);
}

/* or of the registers that a probe was handed */
static bool is_handed_registers(int64_t at)
{
#define HANDED_AT(word, type) || at == 8 * (THREAD_CALL_FROM + (word))
	return at == 8 * THREAD_CALL_FROM THREAD_CALL_COMPAT_PIECES(HANDED_AT);
}

/* or of the stack of a program that has not begun: behind its first word, or a piece of its
 * arguments */
static bool is_user_stack(int64_t at)
{
	return at == 4 || at == 8 || (at % 32 == 0 && at < EXEC_ARGUMENT_BYTES);
}

static void reads_check(const struct instruction_needs *needs, const struct field_layout *layout,
			const char *program, struct fields_seen *seen)
{
	for (size_t i = 0; i < needs->read_count; i++) {
		/* 0: a string that the probe was handed */
		bool known = is_registers(needs->reads[i]) ||
			     is_handed_registers(needs->reads[i]) ||
			     is_user_stack(needs->reads[i]) || !needs->reads[i];

		for (size_t f = 0; f < field_count; f++) {
			if (!field_there(layout, f) || needs->reads[i] != read_offset(layout, f))
				continue;
			known = true;
			seen->field[f] = true;
		}
		expect(known, "%s reads at byte %lld, where the layout has no field", program,
		       (long long)needs->reads[i]);
	}
}

/* After the libbcc and machine that it is for, because others count otherwise, a line "count
 * program" for each; NULL: nothing to keep to. */
static char *budget;

static FILE *export_file; /* NULL: programs are not exported */

static void budget_read(const char *path, const char *machine)
{
	static char text[1 << 18];
	char bcc[64], here[256];

	expect(host_file_read(path, text, sizeof(text) - 1) > 0, "'%s' can't be read", path);
	strcat(text, "\n"); /* which is cut off */
	bcc_library_find(bcc, sizeof(bcc));
	snprintf(here, sizeof(here), "%s %s\n", bcc, machine);
	if (!strncmp(text, here, strlen(here)))
		budget = text;
	else
		printf("the budget is not for %s", here);
}

static void budget_check(const char *program, size_t count)
{
	char words[256];
	const char *at;
	size_t allowed;

	snprintf(words, sizeof(words), " %s\n", program);
	at = strstr(budget, words);
	if (!expect(at, "the budget has no line '%zu %s'", count, program))
		return;
	while (at[-1] != '\n')
		at--;
	allowed = strtoul(at, NULL, 10);
	expect(count * 20 <= allowed * 21 && allowed * 20 <= count * 21,
	       "%s: %zu instructions, and %zu in the budget: if that is right, change it in the "
	       "same commit",
	       program, count, allowed);
}

static void visits_check(const struct bpf_insn *insns, size_t count, uint32_t release,
			 const char *program)
{
	bool oldest = release < FACT_SINCE(4, 14);
	size_t most = oldest ? VISITS_MAX_4_9 : VISITS_MAX_4_14, visits;

	if (release >= VISITS_UNBOUND_SINCE)
		return;
	visits = visits_count(insns, count, oldest);
	expect(visits <= most, "%s: %zu visits are counted: too many for the verifier of %s",
	       program, visits, oldest ? "4.9" : "4.14");
	printf("%s: %zu visits are counted\n", program, visits);
}

static void program_check(const struct bpf_insn *insns, size_t count, uint32_t release,
			  const struct field_layout *layout, const char *program,
			  struct fields_seen *seen)
{
	struct instruction_needs needs;

	instruction_needs_find(insns, count, &needs);
	expect(needs.count <= INSTRUCTIONS_MAX, "%s: %zu instructions", program, needs.count);
	expect(needs.stack_bytes <= STACK_BYTES_MAX, "%s: %d bytes of stack", program,
	       needs.stack_bytes);
	expect(!needs.goes_back || release >= LOOPS_SINCE, "%s jumps backwards", program);
	expect(!needs.newer, "%s has %s, which 4.9 lacks", program, needs.newer);
	for (size_t i = 0; i < needs.helper_count; i++)
		expect(helper_since(needs.helpers[i]) <= release,
		       "%s calls helper %d, newer than %u.%u", program, needs.helpers[i],
		       release >> 8, release & 255);
	expect(!needs.size_varies || release >= SIZES_VARY_SINCE,
	       "%s reads memory of a size that is no constant", program);
	expect(!needs.size_zero || release >= SIZES_ZERO_SINCE,
	       "%s reads memory of a size that may be 0", program);
	visits_check(insns, count, release, program);
	reads_check(&needs, layout, program, seen);
	if (budget)
		budget_check(program, needs.count);
	printf("%s: %zu instructions, %d bytes of stack, %zu helpers, %zu reads\n", program,
	       needs.count, needs.stack_bytes, needs.helper_count, needs.read_count);
}

static void program_take(const struct probe_row *row, const struct bpf_insn *insns, size_t count,
			 uint32_t release, const struct field_layout *layout, const char *program,
			 struct fields_seen *seen)
{
	int result;

	program_check(insns, count, release, layout, program, seen);
	if (!export_file)
		return;
	result = program_export(export_file, program, row, release, insns, count);
	expect(!result, "%s can't be exported: %s", program, strerror(-result));
}

/* What the text is told must hold for the oldest kernel that is told so. */
static uint32_t release_oldest(const struct program_knobs *knobs, const struct probe_row *row)
{
	uint32_t release = fact_rows[row->wants].since;

	if (release < FACT_SINCE(4, 9))
		release = FACT_SINCE(4, 9);
	if (knobs->read_into_map && release < fact_rows[FACT_READ_INTO_MAP].since)
		release = fact_rows[FACT_READ_INTO_MAP].since;
	if (knobs->probe_read_kernel && release < fact_rows[FACT_PROBE_READ_KERNEL].since)
		release = fact_rows[FACT_PROBE_READ_KERNEL].since;
	if (knobs->thread_slots && release < fact_rows[FACT_THREAD_SLOTS].since)
		release = fact_rows[FACT_THREAD_SLOTS].since;
	return release;
}

static void plan_check(const struct bcc_library *bcc, const struct plan_kind *kind,
		       const struct program_knobs *knobs, const struct field_layout *layout,
		       struct fields_seen *seen)
{
	struct text text = {0};
	struct probe_plan plan;
	char words[160], program[PROGRAM_NAME_SIZE], kinds[32] = "";
	void *module;

	if (knobs->latency_kinds && knobs->latency_kinds != (1u << LATENCY_KIND_COUNT) - 1)
		snprintf(kinds, sizeof(kinds), ", kinds 0x%x", knobs->latency_kinds);
	snprintf(words, sizeof(words), "%s%s%s%s%s%s%s%s%s%s%s", kind->name,
		 knobs->pids.translated ? ", translated pids" : "",
		 knobs->read_into_map ? ", read_into_map" : "",
		 knobs->probe_read_kernel ? ", probe_read_kernel" : "",
		 knobs->thread_slots ? ", thread_slots" : "", knobs->latency_kinds ? ", trace" : "",
		 knobs->process_totals ? ", process_totals" : "",
		 knobs->slower_ns ? ", slower" : "", knobs->parts ? "" : ", nothing kept",
		 knobs->trace_pids ? ", few ids" : "", kinds);
	plan_fill(kind, &plan);
	if (!knobs->thread_slots)
		plan.chosen[GROUP_ASK] = plan.chosen[GROUP_STACK] = NULL;
	if (!knobs->parts)
		plan.chosen[GROUP_ASK] = NULL;
	program_text_write(&plan, layout, knobs, &text);
	module = program_compile(bcc, knobs, &text);
	text_done(&text);
	if (!expect(module, "%s: libbcc can't compile the text", words))
		return;
	for (int group = 0; group < GROUP_COUNT; group++) {
		const struct probe_row *row = plan.chosen[group];
		uint32_t release;
		const struct bpf_insn *start;

		if (!row)
			continue;
		release = release_oldest(knobs, row);
		snprintf(program, sizeof(program), "%s (%s)", row->name, words);
		start = bcc->bpf_function_start(module, row->function);
		if (expect(start, "%s: no program %s", program, row->function))
			program_take(row, start,
				     bcc->bpf_function_size(module, row->function) / sizeof(*start),
				     release, layout, program, seen);
	}
	bcc->bpf_module_destroy(module);
}

/* The disk of a request is its queue's where that has one. */
static bool field_unused(const struct field_layout *layout, size_t field)
{
	const bool of_queue = field_there(layout, field_index("request_queue", "disk"));

	return !field_there(layout, field) ||
	       field == field_index("request", of_queue ? "rq_disk" : "q");
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
	FEW_IDS = 256, /* as many ids as programs compare with */
};

#define NEW_KERNEL (READ_INTO_MAP | READ_KERNEL | SLOTS)
#define BEFORE_SLOTS (READ_INTO_MAP | READ_KERNEL)
#define ALL_TOLD (TRACE | TOTALS | SLOWER)
#define EVERY_KIND ((1u << LATENCY_KIND_COUNT) - 1)

/* What the kernels of a time offer, with what users ask for. The first four rows do for an offsets
 * file. Old kernels have kinds of --trace by themselves, too: their verifiers have refused one
 * kind's program and taken that of all. */
static const struct knob_choice {
	int bits;
	uint32_t kinds; /* bits 1 << LATENCY_x where not all */
} knob_choices[] = {
	{NEW_KERNEL | PIDS, 0},
	{NEW_KERNEL, 0},
	{BEFORE_SLOTS | PIDS, 0},
	{BEFORE_SLOTS, 0},
	{0, 0},
	{READ_INTO_MAP, 0},
	{READ_KERNEL, 0},
	{PIDS, 0},
	{PIDS | READ_INTO_MAP, 0},
	{NEW_KERNEL | PIDS | TRACE, 0},
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
};

#define OFFSETS_CHOICES 4

static struct program_knobs knobs_of(const struct knob_choice *choice)
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
		.parts = choice->bits & NOTHING_KEPT ? 0 : (1u << PART_COUNT) - 1,
		.turn_first = 1,
		.cpus_max = 4,
		.latency_kinds = !traced	 ? 0
				 : choice->kinds ? choice->kinds
						 : EVERY_KIND,
		.slower_ns = choice->bits & SLOWER ? 20000000 : 0,
		.registers_marked = traced,
		.block_argument = !(choice->bits & SLOTS),
		.trace_pids = ids,
		.trace_tids = ids,
		.pids = choice->bits & PIDS ? PID_SPACE_BELOW : (struct pid_space){0},
	};
}

/* Whether kernels before 5.5 may get such programs: whoever has raw tracepoints may have helpers
 * write to a map's value, too. */
static bool is_of_old(const struct plan_kind *plan, const struct knob_choice *choice)
{
	if (plan->kinds >> PROBE_TYPED_TRACEPOINT & 1 || choice->bits & (READ_KERNEL | SLOTS))
		return false;
	return choice->bits & READ_INTO_MAP || !(plan->kinds >> PROBE_RAW_TRACEPOINT & 1);
}

/* All plans with one layout; every field must be read by some program. */
static void layout_check(const struct bcc_library *bcc, const struct field_layout *layout,
			 bool every_knob)
{
	const size_t choices = sizeof(knob_choices) / sizeof(knob_choices[0]);
	struct fields_seen seen = {{false}};

	for (size_t i = 0; i < PLAN_COUNT; i++)
		for (size_t k = 0; k < (every_knob ? choices : OFFSETS_CHOICES); k++) {
			struct program_knobs knobs = knobs_of(&knob_choices[k]);

			if (every_knob &&
			    (export_file ? !is_of_old(&plan_kinds[i], &knob_choices[k])
					 : !(knob_choices[k].bits & READ_KERNEL)))
				continue;
			plan_check(bcc, &plan_kinds[i], &knobs, layout, &seen);
		}
	for (size_t f = 0; f < field_count; f++)
		expect(seen.field[f] || field_unused(layout, f),
		       "no program reads %s.%s at byte %u", field_rows[f].of,
		       field_rows[f].names[0], layout->offset[f]);
}

static struct field_layout layout_made_up(bool oldest)
{
	struct field_layout layout = {.sets = FIELDS_ALL};

	/* one has it, or the other */
	layout.lacking[field_index("request_queue", "disk")] = oldest;
	layout.lacking[field_index("request", "rq_disk")] = !oldest;
	for (size_t f = 0; f < field_count; f++) {
		layout.offset[f] = (uint32_t)(24 + 200 * f);
		for (unsigned char n = 0; oldest && n < FIELD_NAMES_MAX; n++)
			if (field_rows[f].names[n])
				layout.name[f] = n;
	}
	return layout;
}

/* The release that an offsets file is for. */
static bool file_release(const char *path, char *release)
{
	char line[256];
	FILE *file = fopen(path, "r");
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = sscanf(line, "release %127s", release) == 1;
	if (file)
		fclose(file);
	return found;
}

static void file_check(const struct bcc_library *bcc, const struct host *host, const char *path,
		       const char *release)
{
	struct field_layout layout = {.sets = FIELDS_ALL}, btf = {.sets = FIELDS_ALL};
	struct error e = {0};

	if (!expect(!field_offsets_read(path, release, host->machine, &layout, &e), "%s", e.line))
		return;
	if (!strcmp(release, host->release) && !access(KERNEL_BTF_PATH, R_OK) &&
	    expect(!btf_layout_read(KERNEL_BTF_PATH, &btf, &e), "%s", e.line))
		for (size_t f = 0; f < field_count; f++)
			expect(layout.offset[f] == btf.offset[f],
			       "%s has %s.%s at byte %u, BTF at %u", path, field_rows[f].of,
			       field_rows[f].names[0], layout.offset[f], btf.offset[f]);
	layout_check(bcc, &layout, false);
}

static void headers_write(const char *work_dir, uint32_t kernel_code)
{
	struct error e = {0};

	expect(!program_headers_write(work_dir, kernel_code, &e), "%s", e.line);
	error_done(&e);
}

/* Sizes that are read: at most 255, 1 to 256, and 1 to 256 that were spilled. */
static void sizes_check(void)
{
	const struct bpf_insn sized[] = {
		BPF_LOAD_(BPF_REG_2, BPF_REG_1, 0),
		BPF_OP_(BPF_ALU64 | BPF_AND | BPF_K, BPF_REG_2, 0, 0, 255),
		BPF_ADD_(BPF_REG_2, 1),
		BPF_STORE_(BPF_REG_10, -8, BPF_REG_2),
		BPF_LOAD_(BPF_REG_2, BPF_REG_10, -8),
		BPF_CALL_(BPF_FUNC_probe_read),
		BPF_EXIT_(),
	};
	const size_t length = sizeof(sized) / sizeof(sized[0]);
	struct bpf_insn whole[sizeof(sized) / sizeof(sized[0])];
	struct instruction_needs needs;

	instruction_needs_find(sized, length, &needs);
	expect(needs.size_varies && needs.size_zero, "a spilled size is not found");
	memcpy(whole, sized, sizeof(whole));
	whole[3] = whole[4] = (struct bpf_insn)BPF_COPY_(BPF_REG_7, BPF_REG_2);
	instruction_needs_find(whole, length, &needs);
	expect(needs.size_varies && !needs.size_zero, "a size from 1 on is not found");
	whole[2] = whole[3];
	instruction_needs_find(whole, length, &needs);
	expect(needs.size_varies && needs.size_zero, "a size from 0 on is not found");
}

/* What must be found is found: a program with one of each. */
static void self_check(void)
{
	const struct bpf_insn bad[] = {
		BPF_OP_(BPF_JMP | BPF_JA, 0, 0, 0, 0),
		BPF_CALL_(BPF_FUNC_get_current_task),
		BPF_COPY_(BPF_REG_6, BPF_REG_0),
		BPF_ADD_(BPF_REG_6, 1234),
		BPF_STACK_(BPF_REG_1, -520),
		BPF_SET_(BPF_REG_2, 8),
		BPF_COPY_(BPF_REG_3, BPF_REG_6),
		BPF_CALL_(BPF_FUNC_probe_read_kernel),
		BPF_OP_(BPF_JMP32 | BPF_JEQ | BPF_K, BPF_REG_0, 0, -3, 0),
		BPF_EXIT_(),
	};
	struct instruction_needs needs;

	instruction_needs_find(bad, sizeof(bad) / sizeof(bad[0]), &needs);
	expect(needs.goes_back, "a backward jump is not found");
	expect(needs.newer, "a 32-bit jump is not found");
	expect(needs.stack_bytes == 520, "%d bytes of stack are found, not 520", needs.stack_bytes);
	expect(needs.helper_count == 2 && needs.helpers[1] == BPF_FUNC_probe_read_kernel &&
		       helper_since(needs.helpers[1]) > FACT_SINCE(4, 9),
	       "helpers are not found");
	expect(needs.read_count == 1 && needs.reads[0] == 1234, "a read is not found");
	expect(!needs.size_varies && !needs.size_zero, "a size of 8 is not found");
	sizes_check();
}

static void rows_check(void)
{
	for (size_t i = 0; i < probe_row_count; i++) {
		bool planned = false;

		for (size_t k = 0; k < PLAN_COUNT; k++) {
			struct probe_plan plan;

			plan_fill(&plan_kinds[k], &plan);
			planned |= plan.chosen[probe_rows[i].gives] == &probe_rows[i];
		}
		expect(planned, "no plan of this test has %s of %s", probe_rows[i].name,
		       probe_kind_names[probe_rows[i].kind]);
	}
}

/* libbcc takes the structs of tracepoints from tracefs, old ones only through debugfs: both are
 * mounted for this process alone. */
static void tracefs_mount(void)
{
	int failed_as = 0;

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    (access("/sys/kernel/tracing/events", R_OK) &&
	     mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL)))
		failed_as = errno;
	expect(!failed_as, "can't mount tracefs for this process alone: %s", strerror(failed_as));
	if (access("/sys/kernel/debug/tracing/events", R_OK))
		mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
}

int main(int argc, char **argv)
{
	struct work_dir work_dir;
	struct facts facts = {0};
	struct bcc_library bcc;
	struct error e = {0};
	struct host host;
	const bool offsets = argc == 3 && !strcmp(argv[1], "--offsets");
	const bool exports = argc == 3 && !strcmp(argv[1], "--export");
	char release[HOST_TEXT_SIZE];
	void *each;

	if (argc != 1 && !exports && !offsets && (argc != 3 || strcmp(argv[1], "--budget"))) {
		fprintf(stderr,
			"usage: text_check [--offsets FILE | --budget FILE | --export FILE]\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!fact_has(&facts, FACT_BPF) || bcc_library_open(&bcc, &e)) {
		printf("skipped: %s\n", e.line[0] ? e.line : facts.why[FACT_BPF]);
		return 77;
	}
	tracefs_mount();
	host_read(&host);
	if (!expect(!work_dir_make(&work_dir, &e), "%s", e.line))
		return 1;
	self_check();
	rows_check();
	each = dlsym(RTLD_DEFAULT, "bcc_procutils_each_ksym");
	/* NULL: libbcc_bpf of 0.18 has none, so the linker does not export it */
	expect(!each || each == (void *)bcc_procutils_each_ksym,
	       "libbcc does not find bcc_library.c's bcc_procutils_each_ksym");
	if (offsets) {
		if (expect(file_release(argv[2], release), "'%s' has no release", argv[2])) {
			headers_write(work_dir.path, version_code_read(release));
			file_check(&bcc, &host, argv[2], release);
		}
	} else {
		const struct field_layout layout = layout_made_up(exports);

		if (exports)
			export_file = fopen(argv[2], "we");
		expect(!exports || export_file, "'%s' can't be written: %s", argv[2],
		       strerror(errno));
		if (argc == 3 && !exports)
			budget_read(argv[2], host.machine);
		headers_write(work_dir.path, exports ? OLDEST_KERNEL : host.kernel_code);
		layout_check(&bcc, &layout, true);
	}
	work_dir_remove(&work_dir);
	error_done(&e);
	if (export_file)
		expect(!fclose(export_file), "'%s' can't be written: %s", argv[2], strerror(errno));
	printf("%d passed, %d failed, 0 skipped\n", passed, failed);
	fflush(NULL);
	/* no destructors: those of LLVM have freed twice after a failed compile (0.26) */
	_exit(failed != 0);
}
