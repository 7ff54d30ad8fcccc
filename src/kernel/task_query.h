/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the kernel knows of one task, as a program reads it that is run for that (from 5.10 on, with
 * BTF); nothing is attached. Its locks that a look at its files in /proc or at its memory takes: of
 * its memory map (mmap_lock), of its exec (exec_update_lock or, in 5.10, exec_update_mutex), and of
 * an epoll set whose descriptors are listed; what /proc takes ten times as long to tell; and return
 * addresses that uretprobes have replaced.
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
/* Descriptor of the program, not owned by the caller; -1: there is none. */
int task_query_program(void);

#endif
