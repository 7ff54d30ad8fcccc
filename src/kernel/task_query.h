/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the kernel knows of one task, as a program reads it that is run for that (from 5.10 on, with
 * BTF); nothing is attached. Its locks that a look at its files in /proc or at its memory takes: of
 * its memory map (mmap_lock), of its exec (exec_update_lock or, in 5.10, exec_update_mutex), and of
 * an epoll set whose descriptors are listed; and what /proc takes ten times as long to tell.
 */
#ifndef TSNAP_KERNEL_TASK_QUERY_H
#define TSNAP_KERNEL_TASK_QUERY_H

#include <stdbool.h>
#include <stdint.h>

/* Has avoids_process() ask for these locks. Nothing changes where the kernel lacks what that needs,
 * or forbids it. */
void task_query_begin(void);
/* Reads a thread's effective uid, and the address of its set of cgroups: another one once it was
 * moved. Where a set has been freed, a later one may have its address. Takes 2 us; /proc takes ten
 * times that. False: not known. */
bool task_query_ids(int64_t tid, int64_t *uid, uint64_t *groups);
/* Reads the CPU that the thread is on or waits for, and its policy (SCHED_*). False: not known. */
bool task_query_queue(int64_t tid, int64_t *cpu, int64_t *policy);
/* Descriptor of the program, not owned by the caller; -1: there is none. */
int task_query_program(void);

#endif
