/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Locks of java.util.concurrent that threads of HotSpot are parked for, and classes of objects with
 * monitors, read in a parser out of the Java heap. Everything in it may be a lie, or change
 * meanwhile.
 *
 * LockSupport.park() leaves the object that the thread waits for in java.lang.Thread::parkBlocker
 * until it returns. If that is an AbstractOwnableSynchronizer, as those of ReentrantLock and
 * ReentrantReadWriteLock are, its exclusiveOwnerThread is the thread that has the lock, and eetop
 * of that the address of its JavaThread. Where the JVM put these fields it keeps with its classes,
 * whose own layout java_layout has.
 *
 * Objects are moved by garbage collections. Nothing is read while one has stopped all threads, and
 * all is read twice. Collectors that move objects beside running threads are read only if the old
 * copies say that they are old: Shenandoah, not ZGC.
 */
#ifndef TSNAP_UNWIND_RUNTIME_JAVA_LOCKS_H
#define TSNAP_UNWIND_RUNTIME_JAVA_LOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/runtime/java_layout.h"
#include "unwind/runtime/runtime_request.h"

/* Form of a JVM's pointers of one kind in its objects. */
struct java_pointers {
	bool narrow; /* 32 bits, to be shifted and added to the base */
	uint64_t base;
	uint32_t shift;
};

/* Facts about a JVM's objects; zeroed at first. */
struct java_locks {
	bool looked; /* the JVM's options were read */
	bool usable; /* they are such that its objects can be read */
	struct java_pointers objects, classes;
	uint64_t thread_class;		/* address of the class java.lang.Thread; 0: not known */
	uint32_t blocker_at, native_at; /* offsets of parkBlocker and eetop in a thread */
	uint64_t lock_class;		/* AbstractOwnableSynchronizer; 0: not met yet */
	uint32_t owner_at;
};

enum java_parked {
	PARKED_ELSEWHERE, /* it waits for no such lock, until it wakes */
	PARKED_UNREAD,	  /* it could not be read, as something changes */
	PARKED_LATER,	  /* nobody has the lock as its only owner, or no class is known yet */
	PARKED_OWNED,
};

/* Finds the class java.lang.Thread by a thread, the address of a JavaThread, unless it is known. */
void java_locks_find(struct java_locks *locks, const struct java_layout *layout,
		     struct thread_memory *memory, uint64_t thread);

/* Reads the lock that a thread is parked for. Only where it is owned, lock is filled; its owner is
 * the address of a JavaThread, or 0: of a virtual thread. */
enum java_parked java_parked_read(struct java_locks *locks, const struct java_layout *layout,
				  struct thread_memory *memory, uint64_t thread,
				  struct java_monitor *lock);

/* Reads the class of the object that has the monitor. "": it can't be read. */
void java_monitor_class(const struct java_locks *locks, const struct java_layout *layout,
			struct thread_memory *memory, uint64_t monitor, char to[JAVA_CLASS_SIZE]);

#endif
