/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the monitor ("synchronized") that a thread of HotSpot, Java 8 and later, waits to enter,
 * and the thread that has it.
 *
 * JavaThread::_current_pending_monitor points to the monitor for all of that wait
 * (ObjectMonitor::enter() in src/hotspot/share/runtime/objectMonitor.cpp), and
 * ObjectMonitor::_owner has the owner: before Java 24 the JavaThread, or an address on its stack if
 * it locked the object there before anybody waited (inflate() in synchronizer.cpp); since 24 the
 * thread's JavaThread::_monitor_owner_id; since 21 it may be ANONYMOUS_OWNER, and the owner is the
 * thread that has the object in its LockStack. java_layout finds the fields. A parser reads files
 * and memory; everything in these may be a lie, or change meanwhile.
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

#define JAVA_THREADS_MAX 4096 /* limit of the threads that are known of a process */

/* A JVM and its threads. */
struct java_threads {
	struct java_layout layout;
	struct java_thread *threads;
	size_t count, capacity;
	/* Monitors to positions, plus one, of threads that have had them; JAVA_THREADS_MAX at
	 * most */
	struct index holders;
};

struct java_monitors {
	struct runtime_reader reader;
	struct cache processes;
	int64_t (*id_of)(const char *proc_root, const struct stack_thread *thread);
	struct runtime_looks looks;
};

/* Makes an empty struct. proc_root must stay. id_of: returns the thread's id, as its process knows
 * it. parser: reads files and memory; or NULL. */
void java_monitors_init(struct java_monitors *monitors, const char *proc_root,
			int64_t (*id_of)(const char *proc_root, const struct stack_thread *thread),
			struct parser *parser);
void java_monitors_done(struct java_monitors *monitors);		  /* takes zeroed structs */
void java_monitors_sweep(struct java_monitors *monitors, int64_t now_ns); /* about once a second */

/* True if the thread waits to enter a monitor. As long as it has the same episode it is taken to
 * wait for the same monitor. */
bool java_monitor_find(struct java_monitors *monitors, const struct stack_thread *thread,
		       uint64_t episode, struct java_monitor *monitor);

/* True if the scan had no time to look at the thread's process, so that nothing is known of it yet.
 */
bool java_monitors_due(struct java_monitors *monitors, const struct stack_thread *thread);

/* Lists the threads of a JVM, in a parser. java: zeroed at first but for its layout;
 * java_threads_done() frees it. False: the list can't be read. */
bool java_threads_list(struct java_threads *java, struct thread_memory *memory);
void java_threads_done(struct java_threads *java);
/* Reads the monitor that a thread waits for, in a parser. *requested: what it waits for could be
 * read. False: it waits for no monitor. */
bool java_monitor_read(struct java_threads *java, struct thread_memory *memory, int64_t id,
		       uint64_t episode, uint8_t *requested, struct java_monitor *monitor);

#endif
