/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live_trace.h"
#include "base/clock.h"
#include "base/names.h"
#include "trace_table.h"

#include <errno.h>
#include <string.h>

_Static_assert(HISTOGRAM_BUCKETS == LATENCY_BUCKETS &&
		       HISTOGRAM_FIRST_NS == 1 << (LATENCY_SHIFT + 1),
	       "the kernel's buckets are the report's");

struct traced {
	struct live *live;
	uint64_t needs;
	trace_taker *take;
	void *to;
};

/* Whether there is a record that is still of the thread that the key tells of. */
static bool record_find(struct live *live, const struct latency_key *key,
			struct thread_state *record)
{
	struct thread_table *table = &live->kernel.table;
	uint32_t slot;

	if (thread_table_key(table, key->tid, &slot) || thread_table_get(table, slot, record) ||
	    record->sched.tid != key->tid)
		return false;
	if (!live_seed_whole(record, record))
		return false;
	return !key->tgid || (record->identity.tgid == key->tgid &&
			      !memcmp(record->identity.comm, key->comm, sizeof(key->comm)));
}

/* Of a thread that has gone since, what the key tells. */
static void who_fill(struct live *live, const struct latency_key *key, struct sample *who)
{
	struct thread_state record;

	if (record_find(live, key, &record)) {
		record_sample(&record, &live->moment, DOING_SLEEP, who);
		who->state = who->state_us = who->cpu = who->waker_tid = ABSENT;
		return;
	}
	*who = sample_absent;
	who->tid = key->shown_tid;
	if (!key->tgid)
		return;
	who->pid = key->tgid;
	who->uid = key->uid;
	who->comm = name_of(key->comm, sizeof(key->comm));
}

/* By what a distribution knows; what only a sample has refuses nothing. */
static bool who_wanted(struct live *live, struct sample *who, const struct lookup_hint *hint)
{
	uint64_t needs = live->filter_needs & NEEDS_ANYTIME;
	uint64_t known = KNOWN_IDS | NEED_COMM | needs;

	if (who->pid == live->own_pid || filter_excludes(live->filter, who->pid, who->tid))
		return false;
	if (who->state != ABSENT) { /* of a sleep */
		known |= KNOWN_STATE | NEED_SYSCALL;
		needs |= live->filter_needs & NEED_SYSCALL;
	}
	lookup_fill(live->lookup, who, hint, needs, live->moment.now_ns);
	sample_derive(who, needs);
	return filter_ask_thread(live->filter, who, known) != VERDICT_REFUSED;
}

static void latency_take(void *to, const struct latency_key *key, const struct latency *latency)
{
	const struct traced *traced = to;
	struct live *live = traced->live;
	struct histogram histogram = {.sum_ns = (int64_t)latency->sum_ns,
				      .max_ns = (int64_t)latency->max_ns,
				      .bytes = (int64_t)latency->bytes};
	struct lookup_hint hint = {0};
	const struct trace_row *row;
	struct sample who;

	if (key->kind >= LATENCY_KIND_COUNT)
		return;
	row = &trace_rows[key->kind];
	who_fill(live, key, &who);
	if (row->tell)
		row->tell(key, &who, &hint.compat);
	if (!who_wanted(live, &who, &hint))
		return;
	lookup_fill(live->lookup, &who, &hint, traced->needs & (NEEDS_ANYTIME | NEED_SYSCALL),
		    live->moment.now_ns);
	sample_derive(&who, traced->needs);
	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
		histogram.buckets[i] = latency->buckets[i];
	traced->take(traced->to, &row->kind, &who, &histogram);
}

int live_traced(struct source *source, bool all, uint64_t needs, trace_taker *take, void *to,
		struct error *e)
{
	struct live *live = (struct live *)source;
	struct latency_reader *reader = &live->kernel.latency;
	struct traced traced = {live, needs, take, to};
	int64_t now_ns = clock_monotonic_ns();
	int err = all ? latency_reader_finish(reader, now_ns) : latency_reader_turn(reader, now_ns);

	if (err)
		return error_set(e, -err, EXIT_FAILED, "the histograms can't be read: %s",
				 strerror(-err));
	latency_reader_take(reader, latency_take, &traced);
	return 0;
}
