/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Holder of the kernel's lock that a thread waits for: since 6.16 a kernel built with
 * CONFIG_DETECT_HUNG_TASK_BLOCKER keeps the lock's address in task_struct.blocker
 * (include/linux/hung_task.h), and the lock has its owner. A program reads both when it is run for
 * that; nothing is attached. */
#ifndef TSNAP_KERNEL_KERNEL_LOCK_H
#define TSNAP_KERNEL_KERNEL_LOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Kinds of locks, in the low bits of blocker: BLOCKER_TYPE_* of include/linux/hung_task.h. */
#define KERNEL_LOCK_KIND 7
#define KERNEL_LOCK_MUTEX 0
#define KERNEL_LOCK_SEMAPHORE 1
#define KERNEL_LOCK_RWSEM 2 /* of a reader; 3: of a writer */
#define KERNEL_LOCK_PERCPU                                                                      \
	4		    /* our own, for a percpu_rw_semaphore: a task names none; 5: of its \
			       writer, which waits for readers */
#define KERNEL_LOCK_FLAGS 7 /* flags in the owner's word of every kind */

struct kernel_lock {
	uint64_t blocker; /* the lock's address, its kind in the low bits; 0: it waits for none */
	uint64_t owner_word; /* owner word of the lock, with its flags */
	uint32_t owner_tid;  /* kernel's own tid of the owner; 0: nobody, or not known */
	uint32_t owner_pid;
	uint32_t readers; /* threads that share it; 0: none, or not known */
	bool sure;	  /* the owner has the lock; else it is only the last thread that took it */
};

/* Loads the program. Returns its descriptor, the caller's; or -errno. */
int kernel_lock_load(void);
/* Reads the lock that a thread waits for now; tid: as the kernel numbers it. 0 or -errno. */
int kernel_lock_read(int program, uint32_t tid, struct kernel_lock *lock);

/* True if the owner has the lock; count: of an rwsem. Else it has not taken it yet, has only read
 * it last, or is just the last one that had it. */
bool kernel_lock_is_held(uint64_t blocker, uint64_t owner_word, uint64_t count);
/* Number of readers that have an rwsem; 0: none, or it is another lock. */
uint32_t kernel_lock_readers(uint64_t blocker, uint64_t owner_word, uint64_t count);

#endif
