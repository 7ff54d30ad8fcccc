/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which monitor ("synchronized") a thread of HotSpot, Java 8 and later, waits to enter, and which
 * thread has it.
 *
 * JavaThread::_current_pending_monitor tells it for all of that wait (ObjectMonitor::enter() in
 * src/hotspot/share/runtime/objectMonitor.cpp), and ObjectMonitor::_owner who has it: before 24 the
 * JavaThread, or a place on its stack if it locked the object there before anybody waited
 * (inflate() in synchronizer.cpp); since 24 its JavaThread::_monitor_owner_id; since 21 it may be
 * ANONYMOUS_OWNER, and the owner is the thread that has the object in its LockStack. Where fields
 * are java_layout finds. Memory is read by a function of the caller's; everything in it may be a
 * lie, or change meanwhile.
 */
#ifndef TSNAP_UNWIND_RUNTIME_JAVA_MONITORS_H
#define TSNAP_UNWIND_RUNTIME_JAVA_MONITORS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cache.h"
#include "base/index.h"
#include "unwind/process_maps.h"
#include "unwind/runtime/java_layout.h"
#include "unwind/runtime/runtime_find.h"

#define JAVA_THREADS_MAX 4096 /* of a process that are known */

struct java_monitor {
	uint64_t address;
	uint64_t owner; /* as the monitor has it; 0: nobody */
	int64_t holder; /* id of that thread, as the process knows it; 0: not known */
};

/* A JVM and its threads. */
struct java_threads {
	struct java_layout layout;
	struct java_thread *threads;
	size_t count, capacity;
	/* monitors to places of threads that have had them, plus one; JAVA_THREADS_MAX at most */
	struct index holders;
};

struct java_monitors {
	const char *proc_root;
	struct cache processes;
	struct thread_memory memory;
	ssize_t (*copy)(const char *proc_root, int64_t tid, uint64_t from, void *to, size_t bytes);
	int64_t (*id_of)(const char *proc_root, const struct stack_thread *thread);
	struct runtime_looks looks;
};

/* proc_root must stay. id_of: the thread's id, as its process knows it. copy: as struct
 * thread_memory has it. */
void java_monitors_init(struct java_monitors *monitors, const char *proc_root,
			int64_t (*id_of)(const char *proc_root, const struct stack_thread *thread),
			ssize_t (*copy)(const char *proc_root, int64_t tid, uint64_t from, void *to,
					size_t bytes));
void java_monitors_done(struct java_monitors *monitors);		  /* also of a zeroed one */
void java_monitors_sweep(struct java_monitors *monitors, int64_t now_ns); /* about once a second */

/* True if the thread waits to enter a monitor. As long as it has the same stay it is taken to wait
 * for the same. */
bool java_monitor_find(struct java_monitors *monitors, const struct stack_thread *thread,
		       uint64_t stay, struct java_monitor *monitor);

/* The parts that read memory alone, which has been begun. List: what threads there are, for
 * java_threads_done() of zeroed ones. False: it can't be read. */
bool java_threads_list(struct java_threads *java, struct thread_memory *memory);
void java_threads_done(struct java_threads *java);
bool java_monitor_read(struct java_threads *java, struct thread_memory *memory, int64_t id,
		       uint64_t stay, struct java_monitor *monitor);

#endif
