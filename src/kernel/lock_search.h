/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Holder of the kernel's lock that a thread waits for, where its task does not say which
 * (kernel_lock.h): a sleeper has its place in the lock's list of waiters on its own kernel stack
 * (struct mutex_waiter, rwsem_waiter and semaphore_waiter all begin with the links of the list, and
 * the task), the list leads to the lock, and the lock has its owner. Stacks and lists are read by
 * programs that are run for that: from 5.10 on, with BTF, nothing is attached; before, the program
 * is attached to page faults of the thread that reads (kernel_memory.h). After drgn's helpers,
 * which do the same with debug information. */
#ifndef TSNAP_KERNEL_LOCK_SEARCH_H
#define TSNAP_KERNEL_LOCK_SEARCH_H

#include <stdbool.h>
#include <stdint.h>

struct field_layout;
struct kernel_lock;
struct lock_search;
struct lock_symbols;

/* Loads the programs. *search: the caller's. 0, or -errno, and *search stays as it is. */
int lock_search_open(struct lock_search **search);
/* The same by page faults (4.9), with the layout that the probes were compiled with; for use by
 * this thread alone. -ENOENT: the layout lacks members. */
int lock_search_open_by_faults(struct lock_search **search, const struct field_layout *layout);
/* Finds the lock that a thread waits for now; blocker 0: it waits for none that was found. tid: as
 * the kernel numbers it; interruptible: it sleeps in S, where no percpu_rw_semaphore is waited for.
 * 0, or -EAGAIN: it did not sleep all the time, or the
 * lock's list changed. */
int lock_search_read(struct lock_search *search, uint32_t tid, bool interruptible,
		     struct kernel_lock *lock);
/* Reads a word of the kernel's memory; 0 where it can't be read. */
uint64_t lock_search_word(struct lock_search *search, uint64_t address);
const struct lock_symbols *lock_search_symbols(struct lock_search *search);
void lock_search_close(struct lock_search *search); /* may be NULL */

#endif
