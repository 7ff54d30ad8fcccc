/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/chains/live_kernel_locks.h"
#include "live/chains/edge_waiter.h"
#include "kernel/lock_search.h"
#include "live/context/live_context.h"

#include <unistd.h>

#define WAITS_MAX 16384 /* waits kept; then all are forgotten */

/* Lock that a thread waits for: it is the same one until the thread runs again. */
struct kernel_wait {
	uint64_t episode; /* another number for each sleep */
	uint64_t blocker; /* blocker of struct kernel_lock */
};

/* Readers and writers wait for the same lock: the kind is in the low bits. */
static uint64_t lock_address(const struct kernel_lock *lock)
{
	return lock->blocker & ~(uint64_t)3;
}

static const struct kernel_lock *lock_find(const struct keyed *locks, uint64_t address)
{
	return keyed_find(locks, sizeof(struct kernel_lock), address);
}

/* Adds a lock; one that is there stays as it is. */
static void lock_put(struct keyed *locks, const struct kernel_lock *lock)
{
	bool added;
	struct kernel_lock *there = keyed_put(locks, sizeof(*there), lock_address(lock), &added);

	if (added)
		*there = *lock;
}

/* Loads the programs, but not where /proc numbers threads in its own way: the kernel's numbers are
 * those of others there. */
static void locks_open(struct live_context *context, struct live_kernel_locks *locks)
{
	locks->looked = true;
	locks->program = -1;
	if (context->view.translated)
		return;
	if (feature_has(&context->kernel.features, FEATURE_KERNEL_LOCKS))
		locks->program = kernel_lock_load();
	if (feature_has(&context->kernel.features, FEATURE_LOCK_SEARCH))
		lock_search_open(&locks->search);
}

/* Reads what a thread waits for now. False: it is not known. A task does not name the lock if the
 * wait for it can be ended by a signal (TASK_KILLABLE). */
static bool lock_read(struct live_kernel_locks *locks, int64_t tid, struct kernel_lock *lock)
{
	if (locks->program >= 0 && !kernel_lock_read(locks->program, (uint32_t)tid, lock) &&
	    lock->blocker)
		return true;
	return locks->search && !lock_search_read(locks->search, (uint32_t)tid, lock);
}

static struct kernel_wait *wait_of(struct live_kernel_locks *locks, int64_t tid)
{
	if (locks->waits.count == WAITS_MAX)
		keyed_empty(&locks->waits);
	return keyed_put(&locks->waits, sizeof(struct kernel_wait), (uint64_t)tid, NULL);
}

/* Finds the lock, as another thread that waits for it has found it in this scan, or by reading it
 * now. False: it is not known. *lock: blocker 0: the thread waits for none. */
static bool lock_of(struct live_kernel_locks *locks, const struct thread_state *record, int64_t tid,
		    struct kernel_lock *lock)
{
	struct kernel_wait *wait = record->sched.tid ? wait_of(locks, tid) : NULL;
	/* no two sleeps of threads with one id have the same number: a thread is switched less
	 * often than every ns */
	uint64_t episode = record->identity.start_boot_ns + record->sched.sequence_done;
	const struct kernel_lock *found;

	if (wait && wait->episode == episode) {
		*lock = (struct kernel_lock){.blocker = wait->blocker};
		found = lock_find(&locks->found, lock_address(lock));
		if (found)
			*lock = *found;
		if (found || !wait->blocker)
			return true;
	}
	if (!lock_read(locks, tid, lock))
		return false;
	if (lock->blocker)
		lock_put(&locks->found, lock);
	if (wait)
		*wait = (struct kernel_wait){.episode = episode, .blocker = lock->blocker};
	return true;
}

bool live_kernel_lock_edge(struct live_context *context, struct live_kernel_locks *locks,
			   const struct edge_waiter *waiter, struct edge *edge,
			   struct kernel_lock *lock)
{
	int64_t tid = waiter->sample->thread.tid;

	if (!locks->looked)
		locks_open(context, locks);
	if ((locks->program < 0 && !locks->search) || !lock_of(locks, waiter->record, tid, lock) ||
	    !lock->blocker)
		return false;
	edge->kind = EDGE_KERNEL_LOCK;
	/* the last reader to take it may be tsnap, which has looked through files of /proc */
	if (!lock->owner_tid || lock->owner_tid == tid || live_is_own(context, lock->owner_pid))
		return true;
	edge->tid = lock->owner_tid;
	edge->pid = lock->owner_pid;
	edge->sure = lock->sure ? SURE_CERTAIN : SURE_LIKELY;
	return true;
}

void live_kernel_locks_begin(struct live_kernel_locks *locks)
{
	keyed_empty(&locks->found);
}

void live_kernel_locks_check(struct live_kernel_locks *locks)
{
	keyed_empty(&locks->checked);
}

static bool owner_equals(const struct kernel_lock *a, const struct kernel_lock *b)
{
	return a->owner_word == b->owner_word && a->owner_tid == b->owner_tid && a->sure == b->sure;
}

bool live_kernel_lock_holds(struct live_kernel_locks *locks, int64_t tid,
			    const struct kernel_lock *lock, bool slept)
{
	const struct kernel_lock *checked = lock_find(&locks->checked, lock_address(lock));
	struct kernel_lock now;

	if (slept && checked)
		return owner_equals(checked, lock);
	if (!lock_read(locks, tid, &now) || lock_address(&now) != lock_address(lock))
		return false;
	lock_put(&locks->checked, &now);
	return owner_equals(&now, lock);
}

void live_kernel_locks_done(struct live_kernel_locks *locks)
{
	if (locks->looked && locks->program >= 0)
		close(locks->program);
	lock_search_close(locks->search);
	keyed_done(&locks->found);
	keyed_done(&locks->checked);
	keyed_done(&locks->waits);
	*locks = (struct live_kernel_locks){0};
}
