/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live_gil.h"
#include "proc/user_memory.h"

#include <stdio.h>

/* Only pages that are in memory: no process can keep this waiting. */
static ssize_t memory_copy(const char *proc_root, int64_t tid, uint64_t from, void *to,
			   size_t bytes)
{
	return user_memory_read(proc_root, tid, tid, from, to, bytes);
}

bool live_gil_find(void *finder, const struct wait *wait, uint64_t futex, bool with_place,
		   struct runtime_lock *lock)
{
	const struct stack_thread thread = {
		.pid = wait->pid, .tid = wait->tid, .now_ns = wait->now_ns};
	struct live_gil *finding = finder;
	struct python_gil gil;

	if (!(finding->context->wants.needs & NEED_WAITS))
		return false;
	if (!finding->gils.proc_root)
		python_gils_init(&finding->gils, PROC, memory_copy);
	if (!python_gil_find(&finding->gils, &thread, futex, with_place, &gil))
		return false;
	lock->name = "GIL";
	lock->holder = (int64_t)gil.holder;
	lock->turn = (int64_t)(gil.switches & INT64_MAX);
	lock->changing = gil.changing;
	snprintf(lock->place, sizeof(lock->place), "%s", gil.place);
	return true;
}
