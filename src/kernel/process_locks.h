/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Locks that a look at a process's files in /proc or at its memory takes: of its memory map
 * (mmap_lock), of its exec (exec_update_lock or, in 5.10, exec_update_mutex), and of an epoll set
 * whose descriptors are listed. A program reads them when it is run for that (5.10); nothing is
 * attached.
 */
#ifndef TSNAP_KERNEL_PROCESS_LOCKS_H
#define TSNAP_KERNEL_PROCESS_LOCKS_H

#include <stdbool.h>
#include <stdint.h>

/* Has avoids_process() ask for these locks. Nothing changes where the kernel lacks what that needs,
 * or forbids it. */
void process_locks_begin(void);
/* Reads a thread's effective uid, and the address of its set of cgroups: another one once it was
 * moved. Where a set has been freed, a later one may have its address. Takes 2 us; /proc takes ten
 * times that. False: not known. */
bool process_locks_task(int64_t tid, int64_t *uid, uint64_t *groups);
/* Reads the CPU that the thread is on or waits for, and its policy (SCHED_*). False: not known. */
bool process_locks_queue(int64_t tid, int64_t *cpu, int64_t *policy);
/* Descriptor of the program, not owned by the caller; -1: there is none. */
int process_locks_program(void);

#endif
