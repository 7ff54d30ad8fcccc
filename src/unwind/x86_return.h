/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the return of x86-64 code that has no unwind table, as musl's and Go's: its instructions
 * are followed from where it is to a return, for what they do to the stack pointer and to the
 * registers that a function gives back. The result is a row as a table would have it. */
#ifndef TSNAP_UNWIND_X86_RETURN_H
#define TSNAP_UNWIND_X86_RETURN_H

#include "unwind/elf/elf_file.h"
#include "unwind/frame_row.h"

/* Callback for what only the caller knows: the thread's stack. */
struct x86_return_asker {
	/* True if a call may return to what is on the stack so far from that register (DWARF's
	 * number). called: a function was called on the way, so that the stack was aligned there;
	 * behind a call that does not return lies another function. */
	bool (*is_return)(void *of, uint8_t base, int64_t offset, bool called);
	void *of;
};

/* address: as the file has them, of the instruction. exact: the thread is there; else a call
 * returns there. 0, or -ENOENT: no way to a return that can be followed. */
int x86_return_row(const struct elf_file *elf, uint64_t address, bool exact,
		   const struct x86_return_asker *asker, struct frame_row *row);

#endif
