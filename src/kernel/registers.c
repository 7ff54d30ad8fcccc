/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/registers.h"
#include "kernel/bpf_call.h"
#include "kernel/own_switch.h"
#include "kernel/record.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define REGISTERS_BYTES (8 * (THREAD_REGISTER_COUNT + 1)) /* and sp */
#define REGISTERS_AT (-16 - REGISTERS_BYTES)

struct candidate {
	uint64_t words[THREAD_REGISTER_COUNT + 1];
	unsigned int kept;
	const struct own_switch *own;
};

/* Copies a piece of the registers (bpf_text/thread_state.h) to the stack. */
#define COPY_PIECE(to, from, count)                                                       \
	BPF_STACK_(BPF_REG_1, REGISTERS_AT + 8 * (to)), BPF_SET_(BPF_REG_2, 8 * (count)), \
		BPF_LOAD_(BPF_REG_3, BPF_REG_10, -8),                                     \
		BPF_ADD_(BPF_REG_3, (int)candidate + 8 * (from)), BPF_CALL_(BPF_FUNC_probe_read),

/* Loads a program that copies the registers at candidate, of the thread it runs in, into the
 * map. */
static int candidate_load(int map, uint32_t stack_field, uint32_t candidate)
{
	const struct bpf_insn insns[] = {
		BPF_CALL_(BPF_FUNC_get_current_task),
		BPF_STACK_(BPF_REG_1, -8),
		BPF_SET_(BPF_REG_2, 8),
		BPF_COPY_(BPF_REG_3, BPF_REG_0),
		BPF_ADD_(BPF_REG_3, (int)stack_field),
		BPF_CALL_(BPF_FUNC_probe_read),
		THREAD_REGISTER_PIECES(COPY_PIECE)
			COPY_PIECE(THREAD_REGISTER_COUNT, THREAD_STACK_WORD, 1)
				OWN_SWITCH_END_(map, -16, REGISTERS_AT),
	};

	return bpf_call_load(BPF_PROG_TYPE_PERF_EVENT, insns, sizeof(insns) / sizeof(insns[0]));
}

/* True if these are the registers of this thread's own sleep. */
static bool candidate_fits(void *of)
{
	struct candidate *candidate = of;
	struct registers_call call;

	registers_decode(candidate->words, false, &call);
	candidate->kept = registers_kept(candidate->words, candidate->words[THREAD_REGISTER_COUNT],
					 candidate->own->frame);
	return call.nr == SYS_nanosleep &&
	       !memcmp(&call.arg[2], own_switch_marks, sizeof(own_switch_marks));
}

/* Tries a candidate. 1: the registers are where the program looks; 0: they are not; or -errno. */
static int candidate_try(int map, int program, unsigned int *kept)
{
	struct candidate candidate;
	struct own_switch own = {.program = program,
				 .map = map,
				 .value = candidate.words,
				 .fits = candidate_fits,
				 .of = &candidate};
	int result;

	candidate.own = &own;
	result = own_switch_run(&own);
	if (result > 0)
		*kept = candidate.kept;
	return result;
}

int calibrate_registers(const struct field_layout *layout, uint32_t *offset, unsigned int *kept)
{
	const uint32_t stack_field = layout->offset[field_index("task_struct", "stack")];
	int map = own_switch_map((size_t)REGISTERS_BYTES), result = 0;

	if (map < 0)
		return map;
	for (const uint32_t *size = registers_stack_sizes; *size && !result; size++)
		for (const uint32_t *below = registers_below_top; *below && !result; below++) {
			uint32_t candidate = *size - *below;
			int program = candidate_load(map, stack_field, candidate);

			if (program < 0) {
				result = program;
				break;
			}
			result = candidate_try(map, program, kept);
			close(program);
			if (result == 1)
				*offset = candidate;
		}
	close(map);
	if (result < 0)
		return result;
	return result ? 0 : -ENOENT;
}
