/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The user stack of a thread that stands still, from the registers that it saved when it entered
 * the kernel: by the unwind tables of the files, without frame pointers, and along those where
 * there is no table (JIT). Nothing is done to the thread; that it has not run meanwhile is for the
 * caller to check.
 *
 * thread_memory copies the stack's top, process_maps finds which file an address is in,
 * module_table opens each file once and has rows of its unwind table by address, which a process
 * without privileges makes (file_request; there frame_source: through libdw, which gets to see only
 * the one entry that was found and looked through), and frame_step goes to the caller. Files are
 * read, never mapped: whoever owns one may cut it. Without the kernel feature `unwinder` (a build
 * without libdw, or --without unwinder) no file has a table, and walks follow frame pointers.
 *
 * Of x86-64 code without a table a parser makes rows: x86_return follows the instructions
 * to returns, of which one must lead to the byte after a call. frame_step knows
 * what handlers of signals return to. A walk that ends in the first 256 bytes of the process' stack
 * is whole: what begins a program never returns. runtime/java_frames.c leaves code of JIT
 * compilers; runtime/python_frames.h puts functions of Python in place of the C frames of its loop.
 *
 * A file is closed when no process that was walked has it mapped any more, or when no more files
 * can be opened and no walk has come by it for longest; its number and names stay
 * (module_table_mark()). New files have 10 ms of each scan, of which processes get equal shares: a
 * stack that needed more is read again in the next one. An exec puts other files at a process'
 * addresses: the record of its first thread shows it (KEEP_PROGRAM), and process_maps reads again.
 */
#ifndef TSNAP_UNWIND_UNWINDER_H
#define TSNAP_UNWIND_UNWINDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/user_registers.h"
#include "unwind/module_table.h"
#include "unwind/process_maps.h"
#include "unwind/thread_memory.h"

#define STACK_FRAMES_MAX 512   /* of more, the innermost half and the outermost quarter are kept */
#define STACK_DEPTH_MAX 16384  /* frames that a walk passes */
#define MARK_SIGNAL "<signal>" /* a signal's handler was called here */
#define MARK_DEEP "[...]"      /* frames that are left out */
#define MARK_URETPROBE "[uretprobe]" /* the kernel replaced the address that it returns to */
#define STACK_COPY_BYTES (64u << 10) /* a stack's top, copied at once; deeper stacks in pieces */

struct frame {
	uint32_t module; /* number in module_table; MODULE_NONE: outside of all files */
	/* Address as the module's file has it; JIT: in memory. A caller's is that of the byte
	 * before the return address, which is in the call. MODULE_PYTHON, MODULE_MARK: pointer to
	 * a transient name. */
	uint64_t address;
};

/* Addresses of a frame in the process. */
struct frame_location {
	uint64_t ip;
	uint64_t sp; /* the frame's part of the stack is from sp to the next frame's */
};

/* module: MODULE_PYTHON or MODULE_MARK. */
static inline struct frame frame_of_name(uint32_t module, const char *name)
{
	struct frame frame = {module, (uint64_t)(uintptr_t)name};

	return frame;
}

/* Returns the name that a frame has by itself; NULL: it is an address in code. */
static inline const char *frame_own_name(const struct frame *frame)
{
	uintptr_t address = (uintptr_t)frame->address;
	const char *name = NULL;

	if (frame->module == MODULE_PYTHON || frame->module == MODULE_MARK)
		memcpy(&name, &address, sizeof(name));
	return name;
}

enum walk_end {
	WALK_WHOLE,   /* the walk reached the outermost frame */
	WALK_DEEP,    /* the walk passed STACK_DEPTH_MAX frames, or a chain had too many */
	WALK_LOST,    /* a register or table is missing, or makes no sense */
	WALK_OUTSIDE, /* an address that is not in code */
	WALK_UNREAD,  /* the memory could not be read */
	WALK_GONE,    /* the thread is gone */
	WALK_CUT,     /* the copy of a running thread's stack ends there */
	WALK_REFUSED, /* the thread is not ours to read */
	WALK_END_COUNT,
};

struct stack_walk {
	enum walk_end end;
	bool maps_new; /* the process' maps were read for this very walk, or at the same time */
	uint32_t count;
	struct frame frames[STACK_FRAMES_MAX]; /* innermost first */
	struct frame_location locations[STACK_FRAMES_MAX];
};

struct java_frames;

/* As task_query_returns(). */
typedef size_t user_return_reader(int64_t tid, struct user_return *returns, size_t most);

struct unwinder {
	const char *proc_root;
	struct module_table *modules;
	struct cache processes;
	user_return_reader *returns; /* NULL: none */
	struct java_frames *java;    /* runtime/java_frames.c owns it */
	struct thread_memory memory;
	uint64_t ended[WALK_END_COUNT]; /* walks, by how they ended */
};

/* Makes an empty struct. memory: parser that reads Java's memory; or NULL. proc_root and modules
 * must outlive the struct. Files below proc_root may show other ids than system calls take. */
void unwinder_init(struct unwinder *unwinder, const char *proc_root, struct module_table *modules,
		   struct parser *memory, size_t copy_bytes);
void unwinder_done(struct unwinder *unwinder);
void unwinder_forget(struct unwinder *unwinder); /* forgets all processes: before the modules go */
/* Forgets interpreters and virtual machines: to be called before some modules go. */
void unwinder_forget_runtimes(struct unwinder *unwinder);
void unwinder_sweep(struct unwinder *unwinder, int64_t now_ns); /* about once a second */
/* Lets go of the files of processes that have ended. */
void unwinder_drop_ended(struct unwinder *unwinder);

/* The bytes of a stack from the stack pointer on. */
struct stack_bytes {
	const void *bytes;
	size_t count;
};

/* Walks a thread that stands still, or (copy) one that runs, as it was when its registers and its
 * stack were copied. */
void unwinder_walk(struct unwinder *unwinder, const struct stack_thread *thread,
		   const struct user_registers *registers, const struct stack_bytes *copy,
		   struct stack_walk *walk);
/* Makes a walk of a call chain that the kernel made along frame pointers, innermost first. Its end
 * is taken for the outermost frame. */
void unwinder_walk_chain(struct unwinder *unwinder, const struct stack_thread *thread,
			 const uint64_t *chain, uint32_t count, struct stack_walk *walk);

#endif
