/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the kernel knows of one task, as a program reads it that is run for that (from 5.10 on, with
 * BTF); nothing is attached. Its locks that a look at its files in /proc or at its memory takes: of
 * its memory map (mmap_lock), of its exec (exec_update_lock or, in 5.10, exec_update_mutex), and of
 * an epoll set whose descriptors are listed; what /proc takes ten times as long to tell; return
 * addresses that uretprobes have replaced; and its kernel stack.
 */
#ifndef TSNAP_KERNEL_TASK_QUERY_H
#define TSNAP_KERNEL_TASK_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/user_registers.h"

/* Has avoids_process() ask for these locks. Nothing changes where the kernel lacks what that needs,
 * or forbids it. */
void task_query_begin(void);
/* Reads a thread's effective uid, and the address of its set of cgroups: another one once it was
 * moved. Where a set has been freed, a later one may have its address. Takes 2 us; /proc takes ten
 * times that. False: not known. */
bool task_query_ids(int64_t tid, int64_t *uid, uint64_t *groups);
/* Reads the CPU that the thread is on or waits for, and its policy (SCHED_*). False: not known. */
bool task_query_queue(int64_t tid, int64_t *cpu, int64_t *policy);
/* Reads the register by which the thread finds its thread-local storage (fs on x86-64, tpidr_el0 on
 * arm64), as it was when the thread left its CPU. False: not known. */
bool task_query_thread_pointer(int64_t tid, uint64_t *pointer);
/* False: of no thread of this host. */
bool task_query_has_thread_pointer(void);
/* Reads the return addresses of a thread that uretprobes have replaced on its stack, of the
 * innermost functions first; returns how many. Those of a thread that runs may change meanwhile. 0:
 * none is known. */
size_t task_query_returns(int64_t tid, struct user_return *returns, size_t most);
#define KERNEL_STACK_WORDS 128 /* who sleeps for a lock has all of it in less */

/* A task, and its kernel stack as it left it. */
struct task_stack {
	uint64_t task;		      /* address of its task_struct */
	uint64_t running;	      /* 0: it was on no CPU */
	uint64_t switches, preempted; /* times that it left a CPU, by itself and not */
	uint64_t sp;
	uint64_t words[KERNEL_STACK_WORDS]; /* what is at sp and above; 0 where it could not be read
					     */
};

/* Reads the kernel stack of a thread: it means something only if the thread is on no CPU, and still
 * is when it is read again, with the same number of switches. False: there is no such thread, or it
 * is not known. */
bool task_query_stack(int64_t tid, struct task_stack *stack);
/* False: of no thread of this host. */
bool task_query_has_stacks(void);
/* Descriptor of the program, not owned by the caller; -1: there is none. */
int task_query_program(void);

#endif
