/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/chains/live_wakers.h"
#include "live/chains/edge_waiter.h"
#include "live/context/live_context.h"
#include "waits/wait_object.h"

#define WAKES_MIN 8
#define WAKES_MAX 4096	    /* most wakes in a row that are needed after changes of the waker */
#define HISTORIES_MAX 16384 /* histories kept; then all are forgotten */

/* Wakers of a thread's waits for one thing, or for one process. */
struct waker_history {
	uint64_t of; /* hash of the call, or inode of the connection that was waited on last */
	uint64_t sequence;   /* number of the switch out of the last wait that was seen */
	int64_t waker_tid;   /* ABSENT: not known */
	unsigned int wakes;  /* wakes in a row by this thread */
	unsigned int needed; /* wakes before it counts; doubled with each change of the waker */
};

static struct waker_history *history_of(struct keyed *histories, uint64_t key, bool *added)
{
	if (histories->count == HISTORIES_MAX)
		keyed_empty(histories);
	return keyed_put(histories, sizeof(struct waker_history), key, added);
}

static void history_change(struct waker_history *history)
{
	history->wakes = 0;
	if (history->needed < WAKES_MAX)
		history->needed *= 2;
}

/* Adds a wake. A thread that is seen in the wait of the same switch again adds nothing new. */
static void wake_add(struct waker_history *history, const struct edge_waiter *waiter)
{
	int64_t waker_tid = waiter->sample->waker.tid;

	if (history->sequence == waiter->record->sched.sequence_done)
		return;
	history->sequence = waiter->record->sched.sequence_done;
	if (history->waker_tid != ABSENT && history->waker_tid != waker_tid)
		history_change(history);
	history->waker_tid = waker_tid;
	history->wakes++;
}

/* --- waits for one thing */

void live_last_waker_edge(struct live_wakers *wakers, const struct edge_waiter *waiter,
			  struct edge *edge)
{
	const struct sample *sample = waiter->sample;
	const struct wait_object *object;
	struct waker_history *history;
	uint64_t wait;

	wait_call_find(sample->call.name, &object);
	if (!waiter->record->sched.tid || !object || !object->threads_end || wait_has_limit(sample))
		return;
	wait = hash_u64((uint64_t)sample->call.arg[0] & ~object->apart) ^
	       hash_u64((uint64_t)sample->call.nr + 1) ^ hash_u64((uint64_t)sample->thread.pid + 2);
	history = history_of(&wakers->waits, (uint64_t)sample->thread.tid, NULL);
	if (history->of == wait)
		wake_add(history, waiter);
	else
		*history = (struct waker_history){.of = wait,
						  .sequence = waiter->record->sched.sequence_done,
						  .waker_tid = sample->waker.tid,
						  .needed = WAKES_MIN};
	if (history->wakes < history->needed || history->waker_tid <= 0 ||
	    history->waker_tid == sample->thread.tid)
		return;
	edge->kind = EDGE_WAKER;
	edge->tid = history->waker_tid;
	edge->sure = SURE_LIKELY;
}

/* --- waits for one process */

static uint64_t peer_key(const struct edge_waiter *waiter, int64_t pid)
{
	return hash_u64((uint64_t)waiter->sample->thread.tid) ^
	       hash_u64((uint64_t)waiter->sample->thread.start_ns) ^ hash_u64((uint64_t)pid + 1);
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

struct peer_waker live_peer_waker(struct live_wakers *wakers, struct live_context *context,
				  const struct edge_waiter *waiter, int64_t pid, int64_t inode)
{
	uint64_t sequence = waiter->record->sched.sequence_done;
	struct waker_history *history, *own;
	bool added, settled;

	if (!waiter->record->sched.tid)
		return (struct peer_waker){.tid = ABSENT};
	history = history_of(&wakers->peers, peer_key(waiter, pid), &added);
	if (added)
		*history = (struct waker_history){
			.of = (uint64_t)inode, .waker_tid = ABSENT, .needed = WAKES_MIN};
	if (history->of != (uint64_t)inode) {
		history_change(history);
		history->of = (uint64_t)inode;
		history->waker_tid = ABSENT;
		history->sequence = sequence;
	} else if (added || history->sequence != sequence) {
		/* the waker counts for its own process: it may have answered on another connection
		 * than the present one */
		own = keyed_find(
			&wakers->peers, sizeof(*own),
			peer_key(waiter, waker_process(context, waiter->sample->waker.tid)));
		if (own)
			wake_add(own, waiter);
	}
	settled = history->wakes >= history->needed;
	return (struct peer_waker){
		.tid = settled || history->needed == WAKES_MIN ? history->waker_tid : ABSENT,
		.settled = settled,
	};
}

void live_wakers_done(struct live_wakers *wakers)
{
	keyed_done(&wakers->waits);
	keyed_done(&wakers->peers);
}
