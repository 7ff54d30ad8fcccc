/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Code that a signal's handler returns to: a few instructions that have the kernel restore what was
 * interrupted. Most C libraries have an unwind table for them; musl and Go have none. */
#ifndef TSNAP_UNWIND_SIGNAL_FRAME_H
#define TSNAP_UNWIND_SIGNAL_FRAME_H

#include "base/user_registers.h"
#include "unwind/elf/elf_file.h"
#include "unwind/machine.h"
#include "unwind/thread_memory.h"

/* True if these instructions are at that offset of the file. */
bool signal_frame_is(const struct machine *machine, const struct elf_file *elf, uint64_t offset);
/* Goes from these instructions to what was interrupted. Returns 0 or -errno. */
int signal_frame_step(const struct machine *machine, struct thread_memory *memory,
		      struct user_registers *registers);

#endif
