/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/live_trace.h"
#include "base/clock.h"
#include "base/names.h"
#include "live/scan/live_held.h"
#include "live/scan/live_work.h"
#include "live/stacks/live_own_stacks.h"
#include "live/trace_table.h"

#include <bcc/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PROC "/proc"
#define NAMES_WAIT_NS (300 * NS_PER_MS) /* stacks of probes wait so long for names */

_Static_assert(HISTOGRAM_BUCKETS == LATENCY_BUCKETS &&
		       HISTOGRAM_FIRST_NS == 1 << (LATENCY_SHIFT + 1),
	       "the kernel's buckets are the report's");

struct traced {
	struct live_context *context;
	struct live_stacks *stacks;
	uint64_t needs;
	trace_callback *take;
	void *to;
};

/* True if there is a record that is still of the thread in the key. */
static bool record_find(struct live_context *context, const struct latency_key *key,
			struct thread_state *record)
{
	struct thread_table *table = &context->kernel.table;
	uint32_t slot;

	if (thread_table_key(table, key->tid, &slot) || thread_table_get(table, slot, record) ||
	    record->sched.tid != key->tid)
		return false;
	if (!live_seed_whole(record, record))
		return false;
	return !key->tgid || (record->identity.tgid == key->tgid &&
			      !memcmp(record->identity.comm, key->comm, sizeof(key->comm)));
}

/* Fills the thread that an event is of; if it has gone since, with what the key has. */
static void who_fill(struct live_context *context, const struct latency_key *key,
		     struct sample *who)
{
	struct thread_state record;

	if (!key->tid) { /* nobody is known to have done it */
		*who = *sample_absent();
		return;
	}
	if (record_find(context, key, &record)) {
		record_sample(&record, &context->now.scan_time, STATE_SLEEP, who);
		who->now.state = who->now.state_us = who->now.cpu = who->waker.tid = ABSENT;
		return;
	}
	*who = *sample_absent();
	who->thread.tid = key->shown_tid;
	if (!key->tgid)
		return;
	who->thread.pid = key->tgid;
	who->thread.uid = key->uid;
	who->thread.comm = name_of_comm(key->comm);
}

/* Returns the facts that are known without lookups: by a distribution's key, and also by an event,
 * which may have found the call that the thread was in. */
static uint64_t who_known(const struct trace_row *row, const struct sample *who)
{
	uint64_t known = KNOWN_IDS | NEED_COMM | row->kind.known;

	return who->call.nr != ABSENT ? known | NEED_SYSCALL : known;
}

/* True if the filter wants the thread, by what is known of it; what only a sample has refuses
 * nothing. */
static bool who_wanted(struct live_context *context, struct sample *who,
		       const struct lookup_hint *hint, uint64_t known)
{
	uint64_t needs = context->wants.filter_needs & (NEEDS_ANYTIME | (known & NEED_SYSCALL));

	if (live_is_own(context, who->thread.pid) ||
	    filter_excludes(context->wants.filter, who->thread.pid, who->thread.tid))
		return false;
	lookup_fill(context->lookup, who, hint, needs, context->now.scan_time.now_ns);
	sample_derive(who, needs);
	return filter_eval_thread(context->wants.filter, who, known | needs) != VERDICT_REFUSED;
}

/* True if THROTTLES_SEEN of throttles.bpf.c holds, and the scheduler has these functions. */
static bool throttles_seen(struct kernel *kernel)
{
	const struct probe_plan *plan = &kernel->plan;

	return plan->chosen[GROUP_THROTTLE] && plan->chosen[GROUP_UNTHROTTLE] &&
	       plan->chosen[GROUP_SWITCH]->kind != PROBE_TRACEPOINT &&
	       feature_has(&kernel->features, FEATURE_THREAD_SLOTS) &&
	       field_sets_there(&kernel->compiled.layout, FIELDS_QUOTA) &&
	       !strstr(kernel->left_out, plan->chosen[GROUP_THROTTLE]->event) &&
	       !strstr(kernel->left_out, plan->chosen[GROUP_UNTHROTTLE]->event);
}

/* Fills the bucket of a histogram of pieces of work or of calls, and what these consist of. */
static void work_fill(const struct latency_key *key, const struct latency *latency,
		      struct histogram *histogram, struct histogram_split *split)
{
	const uint32_t bucket = key->what[WORK_BUCKET];
	struct work_sums sums;

	*split = (struct histogram_split){0};
	memset(histogram->buckets, 0, sizeof(histogram->buckets));
	histogram->split = split;
	if (bucket >= HISTOGRAM_BUCKETS)
		return;
	memcpy(&sums, latency->buckets, sizeof(sums));
	histogram->buckets[bucket] = (int64_t)sums.count;
	for (int part = 0; part < WORK_PARTS; part++)
		split->parts_ns[bucket][part] = (int64_t)sums.parts_ns[part];
}

/* Returns the text by which a probe counts; NULL: it could not be read. */
static const char *probe_text_name(struct kernel *kernel, const struct latency_key *key)
{
	const uint64_t each = latency_key_each(key);
	struct probe_text text;

	if (!each || bpf_lookup_elem(kernel->compiled.maps[KERNEL_MAP_TEXTS], (void *)&each, &text))
		return NULL;
	return live_probe_text(&text);
}

/* True if events of the user's own probes have stacks. */
static bool own_have_stacks(const struct live_context *context, const struct live_stacks *stacks)
{
	return stacks->needs && context->kernel.compiled.maps[KERNEL_MAP_PROBE_STACKS] >= 0;
}

/* Fills what a key says beside its thread. */
static void key_describe(struct live_context *context, struct live_stacks *stacks,
			 const struct trace_row *row, const struct latency_key *key,
			 struct sample *who, bool *compat)
{
	if (row->report)
		row->report(key, who, compat);
	if (row->texts)
		who->event.value = probe_text_name(&context->kernel, key);
	if (row->own && own_have_stacks(context, stacks))
		live_own_stacks_fill(stacks, key, who);
}

/* Fills the thread that a distribution is of, with all that its keys need. False: the filter
 * refuses it. */
static bool who_find(const struct traced *traced, const struct latency_key *key,
		     const struct trace_row *row, struct sample *who)
{
	struct live_context *context = traced->context;
	struct lookup_hint hint = {0};

	who_fill(context, key, who);
	key_describe(context, traced->stacks, row, key, who, &hint.compat);
	if (!who_wanted(context, who, &hint, who_known(row, who)))
		return false;
	lookup_fill(context->lookup, who, &hint, traced->needs & (NEEDS_ANYTIME | NEED_SYSCALL),
		    context->now.scan_time.now_ns);
	sample_derive(who, traced->needs);
	return true;
}

static void latency_take(void *to, const struct latency_key *key, const struct latency *latency)
{
	const struct traced *traced = to;
	struct live_context *context = traced->context;
	struct histogram histogram = {.sum_ns = (int64_t)latency->sum_ns,
				      .max_ns = (int64_t)latency->max_ns,
				      .amount = (int64_t)latency->amount};
	const struct trace_row *row = trace_row_of(key->kind);
	struct histogram_split split;
	struct sample who;

	if (!row || !who_find(traced, key, row, &who))
		return;
	if (row->kind.quota && !throttles_seen(&context->kernel))
		histogram.amount = ABSENT;
	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
		histogram.buckets[i] = latency->buckets[i];
	if (row->own && key->what[PROBE_MARKS] & PROBE_BELOW)
		histogram = (struct histogram){.below = histogram_count(&histogram)};
	if (row->kind.splits)
		work_fill(key, latency, &histogram, &split);
	traced->take(traced->to, &row->kind, &who, &histogram);
}

/* Takes the samples of a thread that slept within pieces of work. */
static void sleep_take(const struct traced *traced, const struct work_sleep *sleep)
{
	const struct trace_row *row = trace_row_of(LATENCY_WORK);
	struct histogram_split split = {.slept = {0}};
	const struct histogram nothing = {.split = &split};
	struct sample who;

	split.slept[sleep->class] = sleep->samples;
	if (who_find(traced, &sleep->key, row, &who))
		traced->take(traced->to, &row->kind, &who, &nothing);
}

struct reported {
	struct live_context *context;
	struct live_stacks *stacks;
	struct dns_queries *queries;
	uint64_t needs;
	int64_t ahead_us; /* UTC minus the monotonic clock */
	event_callback *take;
	void *to;
};

/* The same for events of control groups. */
struct cgroup_reported {
	struct live_context *context;
	const struct cgroup_events *events;
	event_callback *take;
	void *to;
};

static void event_report(void *to, const struct trace_event *event)
{
	const struct reported *reported = to;
	struct live_context *context = reported->context;
	struct lookup_hint hint = {0};
	const struct trace_row *row;
	uint64_t known, needs;
	struct sample who;
	int64_t state;

	row = trace_row_of(event->key.kind);
	if (!row)
		return;
	who_fill(context, &event->key, &who);
	key_describe(context, reported->stacks, row, &event->key, &who, &hint.compat);
	if (row->event)
		row->event(event, context->now.scan_time.registers_marked, &who, &hint.compat);
	needs = reported->needs & (NEEDS_ANYTIME | (row->of_call ? NEEDS_OF_EVENTS : 0));
	known = who_known(row, &who) | KNOWN_EVENT;
	if (!who_wanted(context, &who, &hint, known))
		return;
	state = who.now.state;
	who.now.state =
		STATE_ON; /* the thread has gone on since: nothing known of it still holds */
	lookup_fill(context->lookup, &who, &hint, needs, context->now.scan_time.now_ns);
	who.now.state = state;
	who.scan.time_us = (int64_t)event->end_ns / NS_PER_US + reported->ahead_us;
	sample_derive(&who, needs);
	if (filter_eval_thread(context->wants.filter, &who, known | needs) == VERDICT_REFUSED)
		return;
	reported->take(reported->to, &row->kind, &who,
		       row->kind.single && !event->duration_ns ? ABSENT
							       : (int64_t)event->duration_ns);
}

static void event_take(void *to, const struct trace_event *event)
{
	const struct trace_row *row = trace_row_of(event->key.kind);
	const struct reported *reported = to;
	struct trace_event whole;

	if (!row || !row->joined)
		event_report(to, event);
	else if (dns_join(reported->queries, event, &whole))
		event_report(to, &whole);
}

static void stacks_want(struct live_stacks *stacks, const struct latency_key *key, int64_t until_ns)
{
	const struct trace_row *row = trace_row_of(key->kind);

	if (row && row->own)
		live_own_stacks_want(stacks, key, until_ns);
}

void live_events(struct live_context *context, struct live_stacks *stacks,
		 struct dns_queries *queries, bool all, uint64_t needs, event_callback *take,
		 void *to)
{
	const int64_t until_ns = clock_monotonic_ns() + NAMES_WAIT_NS;
	struct event_reader *reader = &context->kernel.events;
	struct reported reported = {context,
				    stacks,
				    queries,
				    (needs | context->wants.filter_needs) &
					    (NEEDS_ANYTIME | NEEDS_OF_EVENTS),
				    clock_utc_of_us(0),
				    take,
				    to};

	event_reader_read(reader);
	if (own_have_stacks(context, stacks) && reader->count) {
		for (size_t i = 0; i < reader->count; i++)
			stacks_want(stacks, &reader->events[i].key, until_ns);
		stack_names_wait(stacks->names, until_ns);
	}
	event_reader_give(reader, event_take, &reported);
	dns_unanswered(queries, clock_monotonic_ns(), all, reader->lost_count, event_report,
		       &reported);
}

static void cgroup_event_take(void *to, enum cgroup_event_kind kind, const char *path,
			      int64_t count)
{
	const struct cgroup_reported *reported = to;
	struct sample who = *sample_absent();
	struct text limit = {0};

	text_add_format(&limit, "%s of %s", cgroup_event_limit(reported->events, kind), path);
	if (count > 1)
		text_add_format(&limit, ", %lld times", (long long)count);
	who.scan.time_us = clock_utc_us();
	who.event.outcome = cgroup_event_name(kind);
	who.wait.on = name_transient_string(text_string(&limit));
	text_done(&limit);
	if (filter_eval_thread(reported->context->wants.filter, &who, UINT64_MAX) !=
	    VERDICT_REFUSED)
		reported->take(reported->to, &trace_row_of(LATENCY_INCIDENTS)->kind, &who, ABSENT);
}

void live_cgroup_events(struct live_context *context, struct cgroup_events *events,
			event_callback *take, void *to)
{
	struct cgroup_reported reported = {context, events, take, to};

	if (context->config.traces & 1u << LATENCY_INCIDENTS)
		cgroup_events_read(events, PROC, clock_monotonic_ns(), cgroup_event_take,
				   &reported);
}

int live_traced(struct live_context *context, struct live_stacks *stacks, bool all, uint64_t needs,
		trace_callback *take, void *to, struct error *e)
{
	struct latency_reader *reader = &context->kernel.latency;
	struct traced traced = {context, stacks, needs, take, to};
	const struct work_sleep *sleeps;
	size_t sleep_count;
	int64_t now_ns = clock_monotonic_ns(), until_ns = now_ns + NAMES_WAIT_NS;
	int err = all ? latency_reader_finish(reader, now_ns) : latency_reader_turn(reader, now_ns);

	if (err)
		return error_set(e, -err, EXIT_FAILED, "the histograms can't be read: %s",
				 strerror(-err));
	if (own_have_stacks(context, stacks) && reader->count) {
		for (size_t i = 0; i < reader->count; i++)
			stacks_want(stacks, &reader->keys[i], until_ns);
		stack_names_wait(stacks->names, until_ns);
	}
	latency_reader_take(reader, latency_take, &traced);
	if (!all) /* of pieces that are still in the kernel */
		return 0;
	sleeps = live_work_take(context, &sleep_count);
	for (size_t i = 0; i < sleep_count; i++)
		sleep_take(&traced, &sleeps[i]);
	return 0;
}
