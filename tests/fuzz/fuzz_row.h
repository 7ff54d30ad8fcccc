/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions for targets that get rows of unwind tables: rows are applied, too. */
#ifndef TSNAP_TESTS_FUZZ_ROW_H
#define TSNAP_TESTS_FUZZ_ROW_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "unwind/frame_step.h"

static inline void must(bool holds)
{
	if (!holds)
		abort();
}

/* Steps one frame up from code at that address, on a stack full of addresses of itself. */
static inline void row_apply(const struct machine *machine,
			     const struct frame_operation *operations, const struct frame_row *row,
			     uint64_t address)
{
	static uint64_t stack[1024];
	static struct thread_memory memory;
	struct user_registers registers = {.ip = address, .sp = (uintptr_t)(stack + 512)};

	if (!memory.top)
		thread_memory_init(&memory, "/proc", false, 8192);
	for (size_t i = 0; i < 1024; i++)
		stack[i] = (uintptr_t)(stack + i / 2 + 256);
	for (int i = 0; i < USER_REGISTER_COUNT; i++)
		user_register_set(&registers, i, (uintptr_t)(stack + 512 + i));
	thread_memory_begin(&memory, getpid(), registers.sp);
	frame_step_row(machine, operations, row, &memory, &registers);
}

#endif
