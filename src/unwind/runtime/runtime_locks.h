/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Locks of languages' runtimes that a thread waits for, and the threads that have them. A runtime
 * is found in a process by the name of the file that it is mapped from, and by what the file
 * exports. A parser reads files and memory; everything in these may be a lie, or change meanwhile.
 */
#ifndef TSNAP_UNWIND_RUNTIME_RUNTIME_LOCKS_H
#define TSNAP_UNWIND_RUNTIME_RUNTIME_LOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cache.h"
#include "unwind/process_maps.h"
#include "unwind/runtime/runtime_request.h"

struct runtime_kind;

/* Kinds of runtimes, for runtime_finder_init(). */
extern const struct runtime_kind python_gils, java_monitors;

/* Processes in which runtimes of a kind were looked for. */
struct runtime_finder {
	const struct runtime_kind *kind;
	struct runtime_reader reader;
	struct cache processes;
	int64_t scan_ns, spent_ns; /* time that looking took in a scan, of all processes */
};

/* Makes an empty struct. proc_root must stay. parser: reads files and memory; or NULL. */
void runtime_finder_init(struct runtime_finder *finder, const struct runtime_kind *kind,
			 const char *proc_root, struct parser *parser);
void runtime_finder_done(struct runtime_finder *finder);		  /* takes zeroed structs */
void runtime_finder_sweep(struct runtime_finder *finder, int64_t now_ns); /* about once a second */
/* True if the scan had no time to look at the thread's process, so that nothing is known of it yet.
 */
bool runtime_process_due(struct runtime_finder *finder, const struct stack_thread *thread);

/* True if the thread, which waits for that futex, waits for a GIL. with_location: the holder's
 * location is wanted, too; gil is then as of the first call in this scan. */
bool python_gil_find(struct runtime_finder *gils, const struct stack_thread *thread, uint64_t futex,
		     bool with_location, struct python_gil *gil);

/* True if the thread waits to enter a monitor. As long as it has the same episode it is taken to
 * wait for the same monitor. */
bool java_monitor_find(struct runtime_finder *monitors, const struct stack_thread *thread,
		       uint64_t episode, struct java_monitor *monitor);

#endif
