/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live_peer_wakers.h"
#include "live_edges.h"

#define WAKES_MIN 8
#define WAKES_MAX 4096	    /* most wakes in a row that are needed after changes of the waker */
#define HISTORIES_MAX 16384 /* histories kept; then all are forgotten */

/* Wakers of a thread's waits for one process, as scans have seen them. */
struct peer_waker_history {
	int64_t inode;	     /* connection that it was seen to wait on last */
	uint64_t sequence;   /* number of the thread's last switch out that was seen */
	int64_t waker_tid;   /* ABSENT: not known */
	unsigned int wakes;  /* wakes in a row by this thread */
	unsigned int needed; /* wakes before it counts as settled; doubled with each change */
};

static uint64_t history_key(const struct edge_waiter *waiter, int64_t pid)
{
	return hash_u64((uint64_t)waiter->sample->thread.tid) ^
	       hash_u64((uint64_t)waiter->sample->thread.start_ns) ^ hash_u64((uint64_t)pid + 1);
}

static struct peer_waker_history *history_of(struct live_peer_wakers *wakers, uint64_t key,
					     bool *added)
{
	if (wakers->histories.count == HISTORIES_MAX)
		keyed_empty(&wakers->histories);
	return keyed_put(&wakers->histories, sizeof(struct peer_waker_history), key, added);
}

/* Returns the process of the thread that ended the last wait. ABSENT: the thread has ended, or has
 * no record. */
static int64_t waker_process(struct live_context *context, int64_t tid)
{
	struct thread_table *table = &context->kernel.table;
	const struct thread_state *record;
	struct thread_state copy;
	uint32_t key;

	/* the waker's id is the kernel's, also where /proc numbers threads in its own way */
	if (tid <= 0 || context->view.translated || thread_table_key(table, (uint32_t)tid, &key))
		return ABSENT;
	record = thread_table_mapped(table, key);
	if (!record && !thread_table_get(table, key, &copy))
		record = &copy;
	return record && record->sched.tid == (uint32_t)tid ? record->identity.tgid : ABSENT;
}

static void needed_double(struct peer_waker_history *history)
{
	history->wakes = 0;
	if (history->needed < WAKES_MAX)
		history->needed *= 2;
}

/* Adds a wake. A waker that is seen at the same switch again adds nothing new. */
static void wake_add(struct peer_waker_history *history, const struct edge_waiter *waiter)
{
	uint64_t sequence = waiter->record->sched.sequence_done;

	if (history->sequence == sequence)
		return;
	history->sequence = sequence;
	if (history->waker_tid != ABSENT && history->waker_tid != waiter->sample->waker.tid)
		needed_double(history);
	history->waker_tid = waiter->sample->waker.tid;
	history->wakes++;
}

/* Notes a waker for its own process: it may have answered on another connection than the present
 * one. */
static void waker_note(struct live_peer_wakers *wakers, const struct edge_waiter *waiter,
		       int64_t waker_pid)
{
	struct peer_waker_history *history =
		keyed_find(&wakers->histories, sizeof(*history), history_key(waiter, waker_pid));

	if (history)
		wake_add(history, waiter);
}

static struct peer_waker history_waker(const struct peer_waker_history *history)
{
	bool settled = history->wakes >= history->needed;

	return (struct peer_waker){
		.tid = settled || history->needed == WAKES_MIN ? history->waker_tid : ABSENT,
		.settled = settled,
	};
}

struct peer_waker live_peer_wakers_note(struct live_peer_wakers *wakers,
					struct live_context *context,
					const struct edge_waiter *waiter, int64_t pid,
					int64_t inode)
{
	struct peer_waker_history *history;
	bool added;

	if (!waiter->record->sched.tid)
		return (struct peer_waker){.tid = ABSENT};
	history = history_of(wakers, history_key(waiter, pid), &added);
	/* an earlier scan of this wait has noted the waker of the last one */
	if (!added && history->inode == inode &&
	    history->sequence == waiter->record->sched.sequence_done)
		return history_waker(history);
	if (added)
		*history = (struct peer_waker_history){
			.inode = inode, .waker_tid = ABSENT, .needed = WAKES_MIN};
	if (history->inode == inode) {
		waker_note(wakers, waiter, waker_process(context, waiter->sample->waker.tid));
	} else {
		needed_double(history);
		history->inode = inode;
		history->waker_tid = ABSENT;
		history->sequence = waiter->record->sched.sequence_done;
	}
	return history_waker(history);
}

void live_peer_wakers_done(struct live_peer_wakers *wakers)
{
	keyed_done(&wakers->histories);
}
