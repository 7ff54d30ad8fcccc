/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A walk in progress: shared by unwinder.c and the files beside it that know kinds of code. */
#ifndef TSNAP_UNWIND_WALKER_H
#define TSNAP_UNWIND_WALKER_H

#include "unwind/unwinder.h"

/* State of one walk. */
struct walker {
	struct unwinder *unwinder;
	const struct stack_thread *thread;
	const struct machine *machine;
	struct process_maps *maps;
	struct user_registers registers;
	bool exact;  /* ip is where the thread is or was interrupted, not where a call returns to */
	bool stands; /* the thread stands still */
	struct stack_walk *walk;
};

/* Code at an address, and where it is in files. */
struct code {
	const struct mapping *mapping;
	struct module *module; /* module whose table covers address, or NULL */
	uint64_t address;      /* address as struct frame has it */
};

/* Returns the mapping of the code at an address, or NULL. */
const struct mapping *walker_code(struct walker *walker, uint64_t address);
bool walker_word(struct walker *walker, uint64_t address, uint64_t *word);
/* True if a call ends at the address, or signals' handlers return there. Only x86's calls can be
 * recognized. */
bool walker_is_return(struct walker *walker, uint64_t address);
/* Leaves code that has not made its frame yet, or makes none: its return address is where a call
 * leaves it. */
bool walker_return_at_once(struct walker *walker);

/* --- runtime/java_frames.c */

/* Goes to the caller of code that a JIT compiler has made. Such code always has a frame pointer,
 * except for that of HotSpot's best compiler. Returns 0, 1: there is no caller, or -errno. */
int walker_leave_jit(struct walker *walker);

/* Makes an empty struct. parser: reads the memory; or NULL. Released by free() after
 * java_frames_clear(). */
struct java_frames *java_frames_new(const char *proc_root, struct module_table *modules,
				    struct parser *parser);
void java_frames_clear(struct java_frames *java); /* called before modules go, too */
void java_frames_sweep(struct java_frames *java, int64_t now_ns); /* about once a second */

#endif
