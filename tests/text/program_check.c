/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "program_check.h"
#include "expect.h"
#include "instructions.h"
#include "kernel/bcc_library.h"
#include "kernel/bpf_call.h"
#include "kernel/feature_table.h"
#include "base/host_file.h"
#include "kernel/record.h"
#include "plans.h"
#include "visits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INSTRUCTIONS_MAX 4096 /* BPF_MAXINSNS, the most that kernels before 5.2 accept */
#define INSTRUCTIONS_MORE_SINCE FEATURE_SINCE(5, 2) /* BPF_COMPLEXITY_LIMIT_INSNS */
#define STACK_BYTES_MAX 512			    /* MAX_BPF_STACK */
#define LARGEST_MAX 512				    /* plans of a budget */
#define LOOPS_SINCE FEATURE_SINCE(5, 3)
#define SIZES_VARY_SINCE FEATURE_SINCE(4, 11)
#define SIZES_ZERO_SINCE FEATURE_SINCE(4, 16)
#define VISITS_UNBOUND_SINCE FEATURE_SINCE(5, 2)
/* Limits of visits, as counted by visits.h. With 29 870 of them 4.9 visits 90 972 of 98 304, with
 * 33 927, of another LLVM, 72 851, and programs that it refused have counts of 28 963 to 40 153;
 * with 53 797 of them 4.14 visits 51 750 of 131 072. */
#define VISITS_MAX_4_9 35000
#define VISITS_MAX_4_14 100000

/* The release that a helper came with; include/uapi/linux/bpf.h of 4.9 ends with number 41. */
static uint32_t helper_since(int helper)
{
	if (helper <= BPF_FUNC_set_hash_invalid)
		return FEATURE_SINCE(4, 9);
	if (helper == BPF_FUNC_probe_read_kernel || helper == BPF_FUNC_probe_read_user ||
	    helper == BPF_FUNC_probe_read_user_str)
		return feature_rows[FEATURE_PROBE_READ_KERNEL].since;
	if (helper == BPF_FUNC_map_push_elem || helper == BPF_FUNC_map_pop_elem)
		return FEATURE_SINCE(4, 20);
	return UINT32_MAX;
}

/* Returns the offset at which a program reads the field: for a number of the second pid namespace,
 * and until 4.18 for the pointer in pids[0], 16 bytes more. */
static uint32_t read_offset(const struct field_layout *layout, size_t field)
{
	bool old_pids = !strcmp(field_rows[field].names[0], "thread_pid") && layout->name[field];

	return layout->offset[field] + (!field_rows[field].bytes || old_pids ? 16 : 0);
}

/* True if registers are there, or the return address below them: wake_row.entry of wakes.h */
static bool is_registers(int64_t at)
{
#define PIECE_AT(to, from, count) || at == STACK_REGISTERS + 8 * (from)
	return at == STACK_REGISTERS - 8 || at == STACK_REGISTERS + 8 * THREAD_STACK_WORD ||
	       at == STACK_REGISTERS + 8 * THREAD_FIRST_ARGUMENT ||
	       at == STACK_REGISTERS + 8 * THREAD_SECOND_ARGUMENT ||
	       at == STACK_REGISTERS + 8 * THREAD_CALL_FROM THREAD_REGISTER_PIECES(PIECE_AT)
						       STACK_REGISTER_PIECES(PIECE_AT);
}

/* True if a register passed to a probe is there. */
static bool is_handed_registers(int64_t at)
{
#define HANDED_AT(word, type) || at == 8 * (THREAD_CALL_FROM + (word))
	return at == 8 * THREAD_CALL_FROM THREAD_CALL_COMPAT_PIECES(HANDED_AT);
}

/* True if the stack of a program that has not begun is read there: after its first word, or a piece
 * of its arguments. */
static bool is_user_stack(int64_t at)
{
	return at == 4 || at == 8 || (at % 32 == 0 && at < EXEC_ARGUMENT_BYTES);
}

/* True if a piece of a message of DNS is read there, which begins after that many bytes. */
static bool is_message(int64_t at, int64_t begin)
{
	return at >= begin && at < begin + DNS_BYTES && (at - begin) % 32 == 0;
}

/* True if a packet is read there: after an IPv6 header, or a message after a UDP header, one behind
 * an IPv6 header, or behind that and that of a fragment. */
static bool is_packet(int64_t at)
{
	return at == 40 || is_message(at, 8) || is_message(at, 48) || is_message(at, 56);
}

/* True if a thread's record is read there: behind its head. */
static bool is_record(int64_t at)
{
	return at == LOOK_HEAD;
}

static void reads_check(const struct instruction_needs *needs, const struct field_layout *layout,
			const char *program, struct fields_seen *seen)
{
	for (size_t i = 0; i < needs->read_count; i++) {
		/* 0: a string that was passed to the probe */
		bool known = is_registers(needs->reads[i]) ||
			     is_handed_registers(needs->reads[i]) ||
			     is_user_stack(needs->reads[i]) || is_packet(needs->reads[i]) ||
			     is_record(needs->reads[i]) || !needs->reads[i];

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

/* Largest program of each probe and plan, without --trace and with it. */
static struct largest {
	char plan[PLAN_NAME_SIZE];
	size_t count;
} largest[LARGEST_MAX];
static size_t largest_count;

static void largest_add(const char *plan, size_t count)
{
	struct largest *at = largest, *end = largest + largest_count;

	while (at < end && strcmp(at->plan, plan))
		at++;
	if (at == end && expect(largest_count < LARGEST_MAX, "too many plans"))
		snprintf(largest[largest_count++].plan, PLAN_NAME_SIZE, "%s", plan);
	if (count > at->count)
		at->count = count;
}

void budget_check(const char *path, const char *machine)
{
	static char budget[1 << 16];
	char bcc[64], here[256], words[PLAN_NAME_SIZE + 3];

	expect(host_file_read(path, budget, sizeof(budget) - 1) > 0, "'%s' can't be read", path);
	strcat(budget, "\n"); /* newline that host_file_read() cut off */
	bcc_library_find(bcc, sizeof(bcc));
	snprintf(here, sizeof(here), "%s %s\n", bcc, machine);
	if (strncmp(budget, here, strlen(here))) {
		printf("the budget is not for %s", here);
		return;
	}
	for (const struct largest *at = largest; at < largest + largest_count; at++) {
		const char *line;
		size_t allowed;

		snprintf(words, sizeof(words), " %.*s\n", PLAN_NAME_SIZE, at->plan);
		line = strstr(budget, words);
		while (line && line[-1] != '\n')
			line--;
		allowed = line ? strtoul(line, NULL, 10) : 0;
		expect(at->count * 20 <= allowed * 21 && allowed * 20 <= at->count * 21,
		       "%zu in the budget; if the new number is right, change it in the same "
		       "commit:\n%zu %s",
		       allowed, at->count, at->plan);
	}
}

static void visits_check(const struct judged_program *program)
{
	bool oldest = program->release < FEATURE_SINCE(4, 14);
	size_t most = oldest ? VISITS_MAX_4_9 : VISITS_MAX_4_14, visits;

	if (program->release >= VISITS_UNBOUND_SINCE)
		return;
	visits = visits_count(program->insns, program->count, oldest);
	expect(visits <= most, "%s: %zu visits are counted: too many for the verifier of %s",
	       program->name, visits, oldest ? "4.9" : "4.14");
	printf("%s: %zu visits are counted\n", program->name, visits);
}

void program_check(const struct judged_program *program, const struct field_layout *layout,
		   struct fields_seen *seen)
{
	const char *name = program->name;
	const uint32_t release = program->release;
	struct instruction_needs needs;

	instruction_needs_find(program->insns, program->count, &needs);
	expect(needs.count <= INSTRUCTIONS_MAX || release >= INSTRUCTIONS_MORE_SINCE,
	       "%s: %zu instructions", name, needs.count);
	expect(needs.stack_bytes <= STACK_BYTES_MAX, "%s: %d bytes of stack", name,
	       needs.stack_bytes);
	expect(!needs.goes_back || release >= LOOPS_SINCE, "%s jumps backwards", name);
	expect(!needs.newer, "%s has %s, which 4.9 lacks", name, needs.newer);
	for (size_t i = 0; i < needs.helper_count; i++)
		expect(helper_since(needs.helpers[i]) <= release,
		       "%s calls helper %d, newer than %u.%u", name, needs.helpers[i], release >> 8,
		       release & 255);
	expect(!needs.size_varies || release >= SIZES_VARY_SINCE,
	       "%s reads memory of a size that is no constant", name);
	expect(!needs.size_zero || release >= SIZES_ZERO_SINCE,
	       "%s reads memory of a size that may be 0", name);
	visits_check(program);
	reads_check(&needs, layout, name, seen);
	largest_add(program->plan, needs.count);
	printf("%s: %zu instructions, %d bytes of stack, %zu helpers, %zu reads\n", name,
	       needs.count, needs.stack_bytes, needs.helper_count, needs.read_count);
}

/* Checks sizes that are read: at most 255, 1 to 256, and 1 to 256 that were spilled. */
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

/* Checks that all findings are found in a program that has one of each. */
void program_check_itself(void)
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
		       helper_since(needs.helpers[1]) > FEATURE_SINCE(4, 9),
	       "helpers are not found");
	expect(needs.read_count == 1 && needs.reads[0] == 1234, "a read is not found");
	expect(!needs.size_varies && !needs.size_zero, "a size of 8 is not found");
	sizes_check();
}
