/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live_runtime_locks.h"
#include "base/index.h"
#include "proc/proc.h"

#include <stdio.h>

void live_runtime_locks_done(struct live_runtime_locks *locks)
{
	runtime_finder_done(&locks->gils);
	runtime_finder_done(&locks->monitors);
}

void live_runtime_locks_sweep(struct live_runtime_locks *locks, int64_t now_ns)
{
	runtime_finder_sweep(&locks->gils, now_ns);
	runtime_finder_sweep(&locks->monitors, now_ns);
}

static bool gil_find(struct live_runtime_locks *locks, const struct stack_thread *thread,
		     uint64_t futex, bool with_location, struct runtime_lock *lock)
{
	struct python_gil gil;

	if (!python_gil_find(&locks->gils, thread, futex, with_location, &gil))
		return false;
	lock->kind = EDGE_GIL;
	lock->holder = (int64_t)gil.holder;
	lock->free = !gil.holder;
	lock->turn = (int64_t)(gil.switches & INT64_MAX);
	lock->changing = gil.changing;
	snprintf(lock->location, sizeof(lock->location), "%s", gil.location);
	return true;
}

static bool monitor_find(struct live_runtime_locks *locks, const struct stack_thread *thread,
			 uint64_t episode, struct runtime_lock *lock)
{
	struct java_monitor monitor;

	if (!java_monitor_find(&locks->monitors, thread, episode, &monitor))
		return false;
	lock->kind = EDGE_MONITOR;
	lock->address = monitor.address;
	lock->holder = monitor.holder;
	lock->free = !monitor.owner;
	lock->turn = (int64_t)(hash_u64(monitor.owner ^ hash_u64(monitor.address)) & INT64_MAX);
	return true;
}

bool live_runtime_lock_find(void *finder, const struct wait *wait, uint64_t futex,
			    bool with_location, struct runtime_lock *lock)
{
	const struct stack_thread thread = {
		.pid = wait->pid, .tid = wait->tid, .now_ns = wait->now_ns};
	struct live_runtime_locks *locks = finder;

	if (!locks->gils.reader.proc_root) {
		struct parser *parser = live_parser(locks->context, PARSER_MEMORY);

		runtime_finder_init(&locks->gils, &python_gils, PROC, parser);
		runtime_finder_init(&locks->monitors, &java_monitors, PROC, parser);
	}
	*lock = (struct runtime_lock){.address = 0};
	if (gil_find(locks, &thread, futex, with_location, lock) ||
	    monitor_find(locks, &thread, wait->episode, lock))
		return true;
	lock->later = runtime_process_due(&locks->gils, &thread) ||
		      runtime_process_due(&locks->monitors, &thread);
	return false;
}
