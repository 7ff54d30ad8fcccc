/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where a signal's handler returns to: a few instructions that ask the kernel for what was
 * interrupted. Most C libraries have an unwind table for them; musl and Go have none.
 */
#ifndef TSNAP_STACK_SIGNAL_FRAME_H
#define TSNAP_STACK_SIGNAL_FRAME_H

#include "base/user_registers.h"
#include "stack/machine.h"
#include "stack/thread_memory.h"

bool signal_frame_is(const struct machine *machine, struct thread_memory *memory, uint64_t address);
/* From there to what was interrupted. 0 or -errno. */
int signal_frame_step(const struct machine *machine, struct thread_memory *memory,
		      struct user_registers *registers);

#endif
