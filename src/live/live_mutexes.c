/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live_mutexes.h"
#include "live_edges.h"
#include "base/clock.h"
#include "base/memory.h"
#include "waits/waits.h"

#include <stdlib.h>

/* A mutex is read again after this time: programs must not let go of what another thread holds, but
 * can. */
#define READ_STILL_NS (NS_PER_SECOND / 4)

struct mutex {
	int64_t tid, pid;			/* the holder; ABSENT: not known */
	int64_t turn;				/* turn of struct wait_facts; ABSENT: a mutex */
	bool one_of_many, changing, other_user; /* flags of struct wait_facts */
	bool checked, changed; /* mutex was looked at again; it had another holder then */
	int64_t read_ns;       /* scan time of the scan that read it */
	struct sample waiter;  /* thread whose call it was read for */
	struct lookup_hint hint;
};

/* Returns one key for all threads of a process that wait in the same call for the same futex. */
static uint64_t mutex_key(const struct sample *sample)
{
	return hash_u64((uint64_t)sample->call.arg[0]) ^
	       hash_u64((uint64_t)sample->thread.pid + 1) ^
	       hash_u64(((uint64_t)sample->call.arg[1] << 32 ^ (uint64_t)sample->call.arg[2]) + 2);
}

/* True if the thread has been off its CPU since since_ns, so that it can have changed nothing. */
static bool has_not_run_since(struct live_context *context, int64_t tid, int64_t since_ns)
{
	struct thread_table *table = &context->kernel.table;
	const struct thread_state *record;
	uint64_t sequence;
	uint32_t key;

	/* the array goes by the kernel's ids, which are others in a container */
	if (context->view.translated || thread_table_key(table, (uint32_t)tid, &key))
		return false;
	record = thread_table_mapped(table, key);
	if (!record)
		return false;
	/* thread_table_is_out() says if the record has changed since */
	sequence = __atomic_load_n(&record->sched.sequence_done, __ATOMIC_ACQUIRE);
	return (int64_t)__atomic_load_n(&record->sched.out_ns, __ATOMIC_RELAXED) <= since_ns &&
	       thread_table_is_out(table, key, (uint32_t)tid, sequence);
}

/* True for a mutex that is certain to have the holder that was read. Locks of runtimes have turns:
 * one may be passed on for its holder. */
static bool holder_remains(struct live_context *context, const struct mutex *mutex)
{
	return mutex->tid != ABSENT && mutex->turn == ABSENT &&
	       context->now.scan_time.now_ns - mutex->read_ns < READ_STILL_NS &&
	       has_not_run_since(context, mutex->tid, mutex->read_ns);
}

static void mutex_read(struct live_context *context, const struct edge_waiter *waiter,
		       struct mutex *mutex)
{
	struct wait_facts facts;

	lookup_wait_facts(context->lookup, waiter->sample, &waiter->hint, true,
			  context->now.scan_time.now_ns, &facts);
	*mutex = (struct mutex){.tid = facts.kind == WAIT_LOCK ? facts.tid : ABSENT,
				.pid = facts.pid,
				.turn = facts.turn,
				.one_of_many = facts.one_of_many,
				.changing = facts.changing,
				.other_user = facts.other_user,
				.read_ns = context->now.scan_time.now_ns,
				.waiter = *waiter->sample,
				.hint = waiter->hint};
}

static size_t mutex_slot(struct live_context *context, struct live_mutexes *mutexes,
			 const struct edge_waiter *waiter)
{
	struct mutex_list *now = &mutexes->now, *before = &mutexes->before;
	uint64_t key = mutex_key(waiter->sample);
	bool added;
	uint64_t *slot = index_put(&now->slots, key, &added), *known;

	if (!added)
		return *slot;
	now->mutexes =
		memory_grow(now->mutexes, &now->capacity, now->count + 1, sizeof(*now->mutexes));
	known = index_find(&before->slots, key);
	if (known && holder_remains(context, &before->mutexes[*known - 1])) {
		now->mutexes[now->count] = before->mutexes[*known - 1];
		now->mutexes[now->count].checked = false;
	} else {
		mutex_read(context, waiter, &now->mutexes[now->count]);
	}
	*slot = ++now->count;
	return *slot;
}

bool live_mutex_holds(struct live_context *context, struct live_mutexes *mutexes, size_t slot)
{
	struct mutex *mutex = &mutexes->now.mutexes[slot - 1];
	struct wait_facts facts;

	if (!mutex->checked && !holder_remains(context, mutex)) {
		lookup_wait_facts(context->lookup, &mutex->waiter, &mutex->hint, true,
				  context->now.scan_time.now_ns, &facts);
		mutex->changed = facts.tid != mutex->tid || facts.turn != mutex->turn;
	}
	mutex->checked = true;
	return !mutex->changed;
}

void live_mutex_edge(struct live_context *context, struct live_mutexes *mutexes,
		     const struct edge_waiter *waiter, struct edge *edge, size_t *slot)
{
	const struct mutex *mutex;

	*slot = mutex_slot(context, mutexes, waiter);
	mutex = &mutexes->now.mutexes[*slot - 1];
	edge->kind = EDGE_NONE;
	/* a thread may wait for a mutex that it holds itself, but for no lock of a runtime */
	if (mutex->tid == ABSENT ||
	    (mutex->tid == waiter->sample->thread.tid && mutex->turn != ABSENT))
		return;
	edge->kind = mutex->turn == ABSENT ? EDGE_MUTEX
		     : mutex->one_of_many  ? EDGE_MONITOR
					   : EDGE_GIL;
	edge->tid = mutex->tid;
	edge->pid = mutex->pid;
	/* a wait for the GIL or a monitor goes on until the thread gets it, for a while each
	 * time */
	edge->firm = edge->kind == EDGE_MUTEX;
	edge->timed = edge->kind == EDGE_MUTEX && wait_has_limit(waiter->sample);
	edge->sure = mutex->changing || mutex->other_user ? SURE_LIKELY : SURE_CERTAIN;
}

void live_mutexes_begin(struct live_mutexes *mutexes)
{
	const struct mutex_list before = mutexes->before;

	mutexes->before = mutexes->now;
	mutexes->now = before;
	mutexes->now.count = 0;
	index_empty(&mutexes->now.slots);
}

static void list_done(struct mutex_list *list)
{
	free(list->mutexes);
	index_clear(&list->slots);
}

void live_mutexes_done(struct live_mutexes *mutexes)
{
	list_done(&mutexes->now);
	list_done(&mutexes->before);
}
