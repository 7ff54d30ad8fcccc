/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/chains/live_kernel_locks.h"
#include "live/chains/edge_waiter.h"
#include "kernel/lock_search.h"
#include "live/context/live_context.h"
#include "base/text.h"
#include "proc/syscalls.h"
#include "waits/waits.h"

#include <sys/sysmacros.h>
#include <unistd.h>

#define WAITS_MAX 16384 /* waits kept; then all are forgotten */

/* Lock that a thread waits for: it is the same one until the thread runs again. */
struct kernel_wait {
	uint64_t episode; /* another number for each sleep */
	uint64_t blocker; /* blocker of struct kernel_lock */
	struct lock_name name;
};

/* Readers and writers wait for the same lock: the kind is in the low bits. */
static uint64_t lock_address(const struct kernel_lock *lock)
{
	return lock->blocker & ~(uint64_t)KERNEL_LOCK_KIND;
}

/* What is read of a lock serves all threads with this key: the writer of a percpu_rw_semaphore
 * waits for others than those that wait for it. */
static uint64_t lock_key(const struct kernel_lock *lock)
{
	return lock->blocker & KERNEL_LOCK_PERCPU ? lock->blocker : lock_address(lock);
}

static const struct kernel_lock *lock_find(const struct keyed *locks, uint64_t key)
{
	return keyed_find(locks, sizeof(struct kernel_lock), key);
}

/* Adds a lock; one that is there stays as it is. */
static void lock_put(struct keyed *locks, const struct kernel_lock *lock)
{
	bool added;
	struct kernel_lock *there = keyed_put(locks, sizeof(*there), lock_key(lock), &added);

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
	if (!locks->search && feature_has(&context->kernel.features, FEATURE_LOCK_FAULTS))
		lock_search_open_by_faults(&locks->search, &context->kernel.compiled.layout);
	if (!locks->search)
		return;
	locks->fields = lock_fields_open();
	lock_search_symbols(locks->search);
}

/* Reads what a thread waits for now. False: it is not known. A task does not name the lock if the
 * wait for it can be ended by a signal (TASK_KILLABLE). */
static bool lock_read(struct live_kernel_locks *locks, int64_t tid, bool interruptible,
		      struct kernel_lock *lock)
{
	if (!interruptible && locks->program >= 0 &&
	    !kernel_lock_read(locks->program, (uint32_t)tid, lock) && lock->blocker)
		return true;
	return locks->search &&
	       !lock_search_read(locks->search, (uint32_t)tid, interruptible, lock);
}

static struct kernel_wait *wait_of(struct live_kernel_locks *locks, int64_t tid)
{
	if (locks->waits.count == WAITS_MAX)
		keyed_empty(&locks->waits);
	return keyed_put(&locks->waits, sizeof(struct kernel_wait), (uint64_t)tid, NULL);
}

/* Names a lock that was read for that thread. The descriptor beside a path is not the file's. */
static void lock_name(const struct live_kernel_locks *locks, const struct edge_waiter *waiter,
		      const struct kernel_lock *lock, struct lock_name *name)
{
	const struct sample *sample = waiter->sample;
	const bool compat = waiter->hint.compat;
	int fd = syscall_path(sample->call.nr, compat).arg < 0
			 ? syscall_fd(sample->call.nr, compat, sample->call.arg)
			 : -1;

	*name = (struct lock_name){0};
	if (locks->fields && lock->blocker)
		lock_name_find(locks->fields, locks->search, (uint32_t)sample->thread.tid, fd,
			       lock_address(lock), name);
}

/* Finds the lock, as another thread that waits for it has found it in this scan, or by reading it
 * now. False: it is not known. *lock: blocker 0: the thread waits for none. */
static bool lock_of(struct live_kernel_locks *locks, const struct edge_waiter *waiter,
		    struct kernel_lock *lock, struct lock_name *name)
{
	const struct thread_state *record = waiter->record;
	int64_t tid = waiter->sample->thread.tid;
	struct kernel_wait *wait = record->sched.tid ? wait_of(locks, tid) : NULL;
	/* no two sleeps of threads with one id have the same number: a thread is switched less
	 * often than every ns */
	uint64_t episode = record->identity.start_boot_ns + record->sched.sequence_done;
	const struct kernel_lock *found;

	if (wait && wait->episode == episode) {
		*lock = (struct kernel_lock){.blocker = wait->blocker};
		*name = wait->name;
		found = lock_find(&locks->found, lock_key(lock));
		if (found)
			*lock = *found;
		if (found || !wait->blocker)
			return true;
	}
	if (!lock_read(locks, tid, waiter->sample->now.state == STATE_SLEEP, lock))
		return false;
	if (lock->blocker)
		lock_put(&locks->found, lock);
	if (!wait || wait->episode != episode || wait->blocker != lock->blocker)
		lock_name(locks, waiter, lock, name);
	if (wait)
		*wait = (struct kernel_wait){
			.episode = episode, .blocker = lock->blocker, .name = *name};
	return true;
}

bool live_kernel_lock_edge(struct live_context *context, struct live_kernel_locks *locks,
			   const struct edge_waiter *waiter, struct edge *edge,
			   struct kernel_lock *lock, struct lock_name *name)
{
	int64_t tid = waiter->sample->thread.tid;

	if (!locks->looked)
		locks_open(context, locks);
	if ((locks->program < 0 && !locks->search) || !lock_of(locks, waiter, lock, name) ||
	    !lock->blocker)
		return false;
	/* a writer that has it is not known; nor is who has frozen a file system */
	if ((lock->blocker & KERNEL_LOCK_PERCPU) && !lock->owner_tid) {
		lock->blocker = 0;
		return false;
	}
	edge->kind = EDGE_KERNEL_LOCK;
	/* the last reader to take it may be tsnap, which has looked through files of /proc */
	if (!lock->owner_tid || lock->owner_tid == tid || live_is_own(context, lock->owner_pid))
		return true;
	edge->tid = lock->owner_tid;
	edge->pid = lock->owner_pid;
	edge->sure = lock->sure ? SURE_CERTAIN : SURE_LIKELY;
	return true;
}

static void process_add(struct live_context *context, int64_t pid, struct text *text)
{
	const char *comm =
		waits_comm(lookup_waits(context->lookup), pid, context->now.scan_time.now_ns);

	text_add_format(text, " of %lld%s%s", (long long)pid, comm ? " " : "", comm ? comm : "");
}

void live_kernel_lock_name(struct live_context *context, const struct edge_waiter *waiter,
			   const struct lock_name *name, struct text *text)
{
	const struct sample *sample = waiter->sample;

	text_add_string(text, name->field);
	switch (name->of) {
	case LOCK_OF_NOBODY:
		break;
	case LOCK_OF_FILE:
		if (sample->file.name)
			text_add_format(text, " of %s", sample->file.name);
		break;
	case LOCK_OF_WAITER:
		process_add(context, sample->thread.pid, text);
		break;
	case LOCK_OF_PROCESS:
		process_add(context, name->pid, text);
		break;
	case LOCK_OF_INODE:
		text_add_format(text, " of inode %llu on %u:%u", (unsigned long long)name->inode,
				major(name->device), minor(name->device));
		break;
	case LOCK_OF_DEVICE:
		text_add_format(text, " of %u:%u", major(name->device), minor(name->device));
		break;
	}
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
	const struct kernel_lock *checked = lock_find(&locks->checked, lock_key(lock));
	struct kernel_lock now;

	if (slept && checked)
		return owner_equals(checked, lock);
	if (!lock_read(locks, tid, false, &now) || lock_address(&now) != lock_address(lock))
		return false;
	lock_put(&locks->checked, &now);
	return owner_equals(&now, lock);
}

void live_kernel_locks_done(struct live_kernel_locks *locks)
{
	if (locks->looked && locks->program >= 0)
		close(locks->program);
	lock_search_close(locks->search);
	lock_fields_close(locks->fields);
	keyed_done(&locks->found);
	keyed_done(&locks->checked);
	keyed_done(&locks->waits);
	*locks = (struct live_kernel_locks){0};
}
