/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/calibrate.h"
#include "kernel/bpf_call.h"
#include "kernel/registers.h"
#include "kernel/record.h"

#include <bcc/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define REGISTERS_BYTES (8 * THREAD_REGISTER_COUNT)

/* Arguments that nanosleep ignores but the kernel saves. */
static const uint64_t marks[] = {0x7473006e61700001, 0x7473006e61700002, 0x7473006e61700003,
				 0x7473006e61700004};

static uint32_t stack_field_offset(const struct field_layout *layout)
{
	for (size_t i = 0; i < field_count; i++)
		if (!strcmp(field_rows[i].names[0], "stack"))
			return layout->offset[i];
	return 0;
}

/* Copies a piece of the registers (bpf_text/thread_state.h) to the stack. */
#define COPY_PIECE(to, from, count)                                                     \
	BPF_COPY_(BPF_REG_1, BPF_REG_10), BPF_ADD_(BPF_REG_1, copy + 8 * (to)),         \
		BPF_SET_(BPF_REG_2, 8 * (count)), BPF_LOAD_(BPF_REG_3, BPF_REG_10, -8), \
		BPF_ADD_(BPF_REG_3, (int)candidate + 8 * (from)), BPF_CALL_(BPF_FUNC_probe_read),

/* A program that copies the registers at candidate, of the thread it runs in, into the map's only
 * value. */
static int candidate_load(int map, uint32_t stack_field, uint32_t candidate)
{
	const int copy = -16 - REGISTERS_BYTES;
	const struct bpf_insn insns[] = {
		BPF_STORE_IMM_(BPF_REG_10, -16, 0),
		BPF_CALL_(BPF_FUNC_get_current_task),
		BPF_COPY_(BPF_REG_1, BPF_REG_10),
		BPF_ADD_(BPF_REG_1, -8),
		BPF_SET_(BPF_REG_2, 8),
		BPF_COPY_(BPF_REG_3, BPF_REG_0),
		BPF_ADD_(BPF_REG_3, (int)stack_field),
		BPF_CALL_(BPF_FUNC_probe_read),
		THREAD_REGISTER_PIECES(COPY_PIECE) BPF_MAP_(BPF_REG_1, map),
		BPF_COPY_(BPF_REG_2, BPF_REG_10),
		BPF_ADD_(BPF_REG_2, -16),
		BPF_COPY_(BPF_REG_3, BPF_REG_10),
		BPF_ADD_(BPF_REG_3, copy),
		BPF_SET_(BPF_REG_4, BPF_ANY),
		BPF_CALL_(BPF_FUNC_map_update_elem),
		BPF_SET_(BPF_REG_0, 0),
		BPF_EXIT_(),
	};

	return bpf_call_load(BPF_PROG_TYPE_PERF_EVENT, insns, sizeof(insns) / sizeof(insns[0]));
}

/* Sleeps in nanosleep with the marks, longer and longer until the program has run: a short sleep
 * can end before the switch. 0 with its words, or -ETIME. */
static int marked_sleep(int map, uint64_t *words)
{
	uint32_t key = 0;

	for (long ns = 20000; ns < 50000000; ns *= 4) {
		struct timespec wait = {0, ns};

		memset(words, 0, (size_t)REGISTERS_BYTES);
		bpf_update_elem(map, &key, words, BPF_ANY);
		syscall(SYS_nanosleep, &wait, NULL, marks[0], marks[1], marks[2], marks[3]);
		if (bpf_lookup_elem(map, &key, words))
			return -errno;
		for (size_t i = 0; i < THREAD_REGISTER_COUNT; i++)
			if (words[i])
				return 0;
	}
	return -ETIME;
}

/* Whether the registers of this thread's own sleep are where the program looked. 1: yes, 0: no, or
 * -errno. */
static int candidate_try(int map, int program, bool *marked)
{
	/* clang-format off */
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_CONTEXT_SWITCHES,
				       .sample_period = 1, .disabled = 1};
	/* clang-format on */
	uint64_t words[THREAD_REGISTER_COUNT];
	struct registers_call call;
	int event = perf_call_open(&attr, 0, -1), result;

	if (event < 0)
		return event;
	result = perf_call_run(event, program);
	if (!result)
		result = marked_sleep(map, words);
	close(event);
	if (result) /* of zeros only: nothing of ours is there */
		return result == -ETIME ? 0 : result;
	registers_decode(words, false, &call);
	*marked = registers_marked(words);
	return call.nr == SYS_nanosleep && !memcmp(&call.arg[2], marks, sizeof(marks));
}

int calibrate_registers(const struct field_layout *layout, uint32_t *offset, bool *marked)
{
	int map = bpf_call_map(BPF_MAP_TYPE_ARRAY, 4, (size_t)REGISTERS_BYTES, 1), result = 0;

	if (map < 0)
		return map;
	for (const uint32_t *size = registers_stack_sizes; *size && !result; size++)
		for (const uint32_t *below = registers_below_top; *below && !result; below++) {
			uint32_t candidate = *size - *below;
			int program = candidate_load(map, stack_field_offset(layout), candidate);

			if (program < 0) {
				result = program;
				break;
			}
			result = candidate_try(map, program, marked);
			close(program);
			if (result == 1)
				*offset = candidate;
		}
	close(map);
	if (result < 0)
		return result;
	return result ? 0 : -ENOENT;
}
