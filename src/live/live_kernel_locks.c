/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live_kernel_locks.h"
#include "live_edges.h"

#include <unistd.h>

/* Where /proc numbers threads in its own way the kernel's numbers are those of others. */
static void locks_open(struct live_context *context, struct live_kernel_locks *locks)
{
	bool told =
		!context->view.translated && fact_has(&context->kernel.facts, FACT_KERNEL_LOCKS);

	locks->looked = true;
	locks->program = told ? kernel_lock_load() : -1;
}

bool live_kernel_lock_edge(struct live_context *context, struct live_kernel_locks *locks,
			   const struct edge_asker *asker, struct edge *edge,
			   struct kernel_lock *lock)
{
	int64_t tid = asker->sample.tid;

	if (!locks->looked)
		locks_open(context, locks);
	if (locks->program < 0 || kernel_lock_read(locks->program, (uint32_t)tid, lock) ||
	    !lock->blocker)
		return false;
	edge->kind = EDGE_KERNEL_LOCK;
	/* who took it last for reading may be tsnap, which has looked through files of /proc */
	if (!lock->owner_tid || lock->owner_tid == tid || live_is_own(context, lock->owner_pid))
		return true;
	edge->tid = lock->owner_tid;
	edge->pid = lock->owner_pid;
	edge->sure = lock->sure ? SURE_CERTAIN : SURE_LIKELY;
	return true;
}

bool live_kernel_lock_holds(const struct live_kernel_locks *locks, int64_t tid,
			    const struct kernel_lock *lock)
{
	struct kernel_lock now;

	return !kernel_lock_read(locks->program, (uint32_t)tid, &now) &&
	       now.blocker == lock->blocker && now.owner_word == lock->owner_word &&
	       now.owner_tid == lock->owner_tid && now.sure == lock->sure;
}

void live_kernel_locks_done(struct live_kernel_locks *locks)
{
	if (locks->looked && locks->program >= 0)
		close(locks->program);
	*locks = (struct live_kernel_locks){0};
}
