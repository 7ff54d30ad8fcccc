/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Goes from one frame to its caller's: by a row of the unwind table, along frame pointers, or from
 * code that a signal's handler returns to. */
#ifndef TSNAP_UNWIND_FRAME_STEP_H
#define TSNAP_UNWIND_FRAME_STEP_H

#include "base/user_registers.h"
#include "unwind/frame_source.h"
#include "unwind/thread_memory.h"

/* Reads a word of that machine's. Returns 0 or -errno. */
static inline int word_read(const struct machine *machine, struct thread_memory *memory,
			    uint64_t address, uint64_t *word)
{
	*word = 0; /* little-endian: clears the rest of a short word */
	return thread_memory_read(memory, address, word, machine->word_bytes);
}

/* Go to the caller's frame. Return 0: registers are the caller's; 1: there is no caller, this was
 * the outermost frame; -errno: -ENODATA where a register is needed that nobody knows, -EBADMSG for
 * a table that makes no sense, or what thread_memory_read() gave. */
int frame_step_row(const struct machine *machine, const struct frame_operation *operations,
		   const struct frame_row *row, struct thread_memory *memory,
		   struct user_registers *registers);
int frame_step_pointer(const struct machine *machine, struct thread_memory *memory,
		       struct user_registers *registers);

/* True if the instructions at that offset of the file are those that a signal's handler returns to,
 * and that have the kernel restore what was interrupted. Most C libraries have an unwind table for
 * them; musl and Go have none. */
bool signal_frame_is(const struct machine *machine, const struct elf_file *elf, uint64_t offset);
/* Goes from these instructions to what was interrupted. Returns 0 or -errno. */
int signal_frame_step(const struct machine *machine, struct thread_memory *memory,
		      struct user_registers *registers);

#endif
