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

void live_kernel_locks_check(struct live_kernel_locks *locks)
{
	locks->checked = (struct kernel_lock){0};
}

static bool owner_equals(const struct kernel_lock *a, const struct kernel_lock *b)
{
	return a->owner_word == b->owner_word && a->owner_tid == b->owner_tid && a->sure == b->sure;
}

bool live_kernel_lock_holds(struct live_kernel_locks *locks, int64_t tid,
			    const struct kernel_lock *lock, bool slept)
{
	struct kernel_lock now;

	/* readers and writers wait for the same one: the kind is in the low bits */
	if (slept && !((locks->checked.blocker ^ lock->blocker) & ~(uint64_t)3) &&
	    owner_equals(&locks->checked, lock))
		return true;
	if (kernel_lock_read(locks->program, (uint32_t)tid, &now) || now.blocker != lock->blocker ||
	    !owner_equals(&now, lock))
		return false;
	locks->checked = now;
	return true;
}

void live_kernel_locks_done(struct live_kernel_locks *locks)
{
	if (locks->looked && locks->program >= 0)
		close(locks->program);
	*locks = (struct live_kernel_locks){0};
}
