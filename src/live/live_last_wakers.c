/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live_last_wakers.h"
#include "live_edges.h"
#include "waits/waits.h"

#include <string.h>

#define WAKES_MIN 8
#define WAKES_MAX 4096	    /* most wakes in a row that are needed after changes of the waker */
#define HISTORIES_MAX 16384 /* histories kept; then all are forgotten */

static struct wake_history *history_of(struct live_last_wakers *wakers, int64_t tid)
{
	if (wakers->histories.count == HISTORIES_MAX)
		keyed_empty(&wakers->histories);
	return keyed_put(&wakers->histories, sizeof(struct wake_history), (uint64_t)tid, NULL);
}

/* A condition variable of glibc has two futexes side by side, which take turns. */
static uint64_t wait_hash(const struct sample *sample)
{
	uint64_t of = (uint64_t)sample->call.arg[0];

	if (!strncmp(sample->call.name, "futex", 5))
		of &= ~(uint64_t)7;
	return hash_u64(of) ^ hash_u64((uint64_t)sample->call.nr + 1) ^
	       hash_u64((uint64_t)sample->thread.pid + 2);
}

/* Adds a wake. A thread that is seen in the same wait of the same switch again adds nothing new. */
static void history_add(struct wake_history *history, const struct edge_waiter *waiter)
{
	uint64_t wait = wait_hash(waiter->sample), sequence = waiter->record->sched.sequence_done;
	int64_t waker_tid = waiter->sample->waker.tid;

	if (history->wait != wait) {
		*history = (struct wake_history){.wait = wait,
						 .sequence = sequence,
						 .waker_tid = waker_tid,
						 .needed = WAKES_MIN};
		return;
	}
	if (history->sequence == sequence)
		return;
	history->sequence = sequence;
	history->wakes++;
	if (history->waker_tid == waker_tid)
		return;
	history->waker_tid = waker_tid;
	history->wakes = 1;
	if (history->needed < WAKES_MAX)
		history->needed *= 2;
}

void live_last_waker_edge(struct live_last_wakers *wakers, const struct edge_waiter *waiter,
			  struct edge *edge)
{
	const struct sample *sample = waiter->sample;
	struct wake_history *history;

	if (!waiter->record->sched.tid || !wait_threads_end(sample))
		return;
	history = history_of(wakers, sample->thread.tid);
	history_add(history, waiter);
	if (history->wakes < history->needed || history->waker_tid <= 0 ||
	    history->waker_tid == sample->thread.tid)
		return;
	edge->kind = EDGE_WAKER;
	edge->tid = history->waker_tid;
	edge->sure = SURE_LIKELY;
}

void live_last_wakers_done(struct live_last_wakers *wakers)
{
	keyed_done(&wakers->histories);
}
