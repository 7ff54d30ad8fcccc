/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel stack of a thread: of one that is off its CPU from /proc/TID/stack (needs
 * CAP_SYS_ADMIN and CONFIG_STACKTRACE), of one that is on a CPU by a call chain of perf, whose
 * functions get their names from /proc/kallsyms: modules and BPF programs, too, as they were when
 * it was read. Both give the same names.
 */
#ifndef TSNAP_UNWIND_KERNEL_STACK_H
#define TSNAP_UNWIND_KERNEL_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "unwind/elf/symbol_table.h"

#define KERNEL_FRAMES_MAX 64 /* MAX_STACK_TRACE_DEPTH of fs/proc/base.c */
#define KERNEL_NAME_SIZE 128

/* Functions of the kernel. A zeroed struct is empty and valid. */
struct kernel_symbols {
	struct symbol_table table; /* a symbol's location is that of its name in names */
	char *names;
	size_t names_bytes, names_capacity;
	uint64_t sched_from, sched_to; /* range of functions that wait; 0: not known */
	int err;		       /* what kernel_symbols_read() returned */
};

/* Reads all symbols, in some 50 ms. Returns 0, or -errno: -ENODATA where the kernel shows no
 * addresses (sysctl kernel.kptr_restrict). */
int kernel_symbols_read(struct kernel_symbols *symbols, const char *path);
void kernel_symbols_done(struct kernel_symbols *symbols);
/* Returns the function that the address is in, as %pB of the kernel's printk() has it; NULL: none
 * is known. */
const char *kernel_symbol_find(const struct kernel_symbols *symbols, uint64_t address);

struct kernel_stack {
	uint32_t count;
	char names[KERNEL_FRAMES_MAX][KERNEL_NAME_SIZE]; /* functions, innermost first */
};

/* True if the function is where an interrupt enters the kernel. */
bool kernel_entry_interrupts(const char *function);
/* Reads and parses /proc/TID/stack. Returns 0 or -errno. */
int kernel_stack_read(struct kernel_stack *stack, const char *proc_root, int64_t tid);
/* Reads the text of /proc/TID/stack, with a NUL after it, cut to size. Returns its length, or
 * -errno. */
ssize_t kernel_stack_read_text(const char *proc_root, int64_t tid, char *text, size_t size);
/* Parses "[<0>] do_nanosleep+0x69/0x180" lines; reads nothing else. */
void kernel_stack_parse(struct kernel_stack *stack, const char *text);

/* Fills stack from a call chain. chain: addresses, innermost first. interrupted: the chain begins
 * in an interrupt that looked at the thread, and the interrupt's frames are left out; of a thread
 * that ran in user mode none is left. False: where the interrupt began was not found. */
bool kernel_stack_of_chain(struct kernel_stack *stack, const struct kernel_symbols *symbols,
			   const uint64_t *chain, uint32_t count, bool interrupted);
/* Fills stack from a chain that begins in the scheduler, at a switch out: without the functions
 * that wait, as /proc/TID/stack leaves them out. False: no scheduler was found in it. */
bool kernel_stack_of_switch(struct kernel_stack *stack, const struct kernel_symbols *symbols,
			    const uint64_t *chain, uint32_t count);
/* Drops the frames in which a tracepoint calls its BPF program. */
void kernel_stack_leave_tracepoint(struct kernel_stack *stack);
/* Drops the frames of a preemption: what is left is what the thread did. */
void kernel_stack_resume(struct kernel_stack *stack);

#endif
