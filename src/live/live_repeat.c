/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live_repeat.h"
#include "live_chains.h"
#include "live_episode.h"
#include "live/context/live_context.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/seldom.h"
#include "sample/proc_values.h"

#include <stdlib.h>
#include <string.h>

#define REPEATED_MAX 4096 /* 3 MB; 6 MB where scans leave samples out */
#define REPEAT_IDLE_NS (2 * NS_PER_SECOND)
#define RENEW_NS (8 * NS_PER_SECOND) /* limit of the time between whole lookups of a sample */

/* Waits that have lasted for wait_us are in a scan every look_ns only. Where no chains are followed
 * the last row is for all waits. */
static const struct {
	int64_t wait_us, look_ns;
} looks[REPEAT_LOOKS] = {
	{US_PER_SECOND / 2, NS_PER_SECOND / 10},
	{US_PER_SECOND, NS_PER_SECOND / 5},
	{2 * US_PER_SECOND, 2 * NS_PER_SECOND / 5},
	{4 * US_PER_SECOND, 4 * NS_PER_SECOND / 5},
};

/* Needs that each sample has anew, or that depend on more than the thread's sleep. */
#define NEEDS_ANEW (NEEDS_PROC_VALUES | NEED_PATH)

/* The part of a kept sample that each scan reads: small, so that those of many threads stay in the
 * cache. */
struct repeated {
	struct cache_entry entry; /* key: the record's */
	int64_t out_ns, until_ns;
	int64_t filled_ns; /* time of the last whole lookup */
	uint64_t sequence, needs;
	char comm[THREAD_COMM_SIZE];
	int64_t tid, start_ns;
	int64_t left_out_us; /* weights of the scans that left the sample out, since one had it */
	uint32_t left_out_count; /* number of these scans */
	bool given_known;
	struct chain_sleepers sleepers;
	/* the sample as it was looked up, and, if scans may leave it out, as it was handed over */
	struct sample *samples;
};

enum { LOOKED_UP, GIVEN, SAMPLES };

static void repeated_drop(void *entry)
{
	struct repeated *repeated = entry;

	free(repeated->samples);
}

/* True if samples are kept. They are not where idle threads are sampled, too: these are many, and
 * little is looked up of each. A filter that needs totals or requests takes what is new of them
 * itself. */
static bool context_repeats(const struct live_context *context)
{
	return context->wants.work && !(context->wants.needs & NEEDS_ANEW) &&
	       !(context->wants.filter_needs & (NEED_TOTALS | NEED_BLOCK)) &&
	       context->wants.needs & NEED_SYSCALL && !context->view.translated;
}

static bool sums_up(const struct live_repeat *repeat)
{
	return repeat->source && repeat->source->take_again;
}

/* True if scans may leave samples out: their owner sums them up. A stack is read for each sample,
 * and of a blocker alone it is not known whether a later scan would find another one. */
static bool may_leave_out(const struct live_repeat *repeat, const struct live_context *context)
{
	return sums_up(repeat) && context_repeats(context) &&
	       !(context->wants.needs & NEEDS_STACKS) &&
	       (context->wants.needs & NEEDS_CHAINS) != NEED_BLOCKER;
}

/* True if a scan must have waits again, as the last one that had them was that long ago; notes it,
 * then. Of two scans that are as near to the time it does not matter which. */
static bool look_due(struct live_repeat *repeat, const struct live_context *context, size_t at)
{
	int64_t now_ns = context->now.scan_time.now_ns;

	if (now_ns - repeat->looked_ns[at] < looks[at].look_ns - context->period_ns / 2)
		return false;
	repeat->looked_ns[at] = now_ns;
	return true;
}

/* Notes a thread without a copy: its ids are not wanted, or it has ended, and its process is not
 * known. */
static void uncopied_note(struct repeat_changed *changed, const struct thread_table *table,
			  uint32_t key)
{
	const struct thread_state *record = thread_table_mapped(table, key);

	index_put(&changed->keys, key, NULL);
	if (record && __atomic_load_n(&record->sched.tid, __ATOMIC_RELAXED))
		index_put(&changed->pids, __atomic_load_n(&record->identity.tgid, __ATOMIC_RELAXED),
			  NULL);
}

static void changed_note(struct repeat_changed *changed, const struct live_context *context)
{
	const struct live_capture *capture = context->now.capture;

	changed->any = !capture->listed;
	index_empty(&changed->keys);
	index_empty(&changed->pids);
	for (size_t i = 0; i < capture->count; i++) {
		index_put(&changed->keys, capture->threads[i].record.key, NULL);
		index_put(&changed->pids, capture->threads[i].record.identity.tgid, NULL);
	}
	for (size_t i = 0; i < capture->gone_count; i++)
		uncopied_note(changed, &context->kernel.table, capture->gone[i]);
}

static bool process_changed(const struct repeat_changed *changed, int64_t pid)
{
	return pid && (changed->any || index_find(&changed->pids, (uint64_t)pid));
}

/* True if a switch since the last scan may have changed the chain. */
static bool chain_switched(const struct live_repeat *repeat, struct live_context *context,
			   const struct chain_sleepers *sleepers)
{
	return process_changed(&repeat->changed, sleepers->pid) ||
	       !chain_sleepers_sleep(sleepers, context);
}

void live_repeat_begin_scan(struct live_repeat *repeat, const struct live_context *context)
{
	bool chains = context->wants.needs & NEEDS_CHAINS;

	repeat->left_out_us = INT64_MAX;
	if (!may_leave_out(repeat, context))
		return;
	changed_note(&repeat->changed, context);
	for (size_t at = chains ? 0 : REPEAT_LOOKS - 1; at < REPEAT_LOOKS; at++)
		if (!look_due(repeat, context, at)) {
			repeat->left_out_us = chains ? looks[at].wait_us : 0;
			return;
		}
}

struct repeated *live_repeat_find(struct live_repeat *repeat, const struct live_context *context,
				  const struct thread_state *record, enum thread_state_kind state)
{
	struct repeated *before;

	if (state != STATE_SLEEP || !repeat->samples.count)
		return NULL;
	before = cache_find(&repeat->samples, record->key);
	if (!before || before->sequence != record->sched.sequence_done ||
	    before->needs != context->wants.needs || before->tid != record->identity.tid ||
	    before->start_ns != record_start_ns(record) ||
	    memcmp(before->comm, record->identity.comm, sizeof(before->comm)) != 0)
		return NULL;
	before->entry.used_ns = context->now.scan_time.now_ns;
	return before;
}

/* True if this scan leaves out the wait that began then. firm: its chain is (struct
 * chain_sleepers). until_ns: its sample may be repeated until then. */
static bool is_left_out(const struct live_repeat *repeat, const struct live_context *context,
			bool firm, int64_t out_ns, int64_t until_ns)
{
	int64_t now_ns = context->now.scan_time.now_ns;

	return now_ns < until_ns && (firm || (now_ns - out_ns) / NS_PER_US >= repeat->left_out_us);
}

bool live_repeat_leave_out(const struct live_repeat *repeat, struct live_context *context,
			   struct repeated *repeated, int64_t weight_us)
{
	if (!repeated->given_known ||
	    !is_left_out(repeat, context, repeated->sleepers.firm, repeated->out_ns,
			 repeated->until_ns) ||
	    chain_switched(repeat, context, &repeated->sleepers))
		return false;
	repeated->left_out_count++;
	repeated->left_out_us += weight_us;
	return true;
}

bool live_repeat_rest(const struct repeated *repeated, uint32_t *key, struct repeat_rest *rest)
{
	if (!repeated->given_known)
		return false;
	*key = (uint32_t)repeated->entry.key;
	*rest = (struct repeat_rest){
		.out_ns = repeated->out_ns,
		.until_ns = repeated->until_ns,
		.key_count = repeated->sleepers.count,
		.firm = repeated->sleepers.firm,
		.pid = repeated->sleepers.pid,
	};
	for (uint32_t i = 0; i < rest->key_count; i++)
		rest->keys[i] = repeated->sleepers.sleepers[i].key;
	return true;
}

/* When housekeeping is done, all copies of records are visited, should one be out of date. */
bool live_repeat_passes(const struct live_repeat *repeat, const struct live_context *context)
{
	return live_repeat_leaves_out(repeat) && context->now.capture->listed &&
	       !context->now.housekeeping;
}

bool live_repeat_pass(const struct live_repeat *repeat, const struct live_context *context,
		      struct repeat_rest *rest, int64_t weight_us)
{
	if (!is_left_out(repeat, context, rest->firm, rest->out_ns, rest->until_ns) ||
	    process_changed(&repeat->changed, rest->pid))
		return false;
	for (uint32_t i = 0; i < rest->key_count; i++)
		if (index_find(&repeat->changed.keys, rest->keys[i]))
			return false;
	rest->passed_count++;
	rest->passed_us += weight_us;
	return rest->passed = true;
}

void live_repeat_rest_settle(struct live_repeat *repeat, uint32_t key, struct repeat_rest *rest)
{
	struct repeated *repeated = rest->passed_count ? cache_find(&repeat->samples, key) : NULL;

	if (repeated) {
		repeated->left_out_count += rest->passed_count;
		repeated->left_out_us += rest->passed_us;
	}
	rest->passed_count = 0;
	rest->passed_us = 0;
}

/* Makes times absent that a sample has since the thread's previous one. */
static void sums_clear(struct sample *sample)
{
	sample->sums = sample_absent()->sums;
}

/* Makes times of a sample longer: the thread has slept on. */
static void sample_lengthen(struct sample *sample, int64_t us)
{
	sample->now.state_us += us;
	if (sample->call.us != ABSENT)
		sample->call.us += us;
}

/* Reads again what the wait is for. True if the kept sample then holds for some time again. */
static SELDOM bool repeated_renew(struct live_context *context, const struct thread_state *record,
				  struct repeated *repeated)
{
	const struct lookup_hint hint = {.sequence = record->sched.sequence_done};
	int64_t now_ns = context->now.scan_time.now_ns;

	if (now_ns - repeated->filled_ns >= RENEW_NS ||
	    !lookup_wait_renew(context->lookup, &repeated->samples[LOOKED_UP], &hint,
			       repeated->needs, now_ns) ||
	    !live_episode_lasts(context, record, false)) {
		repeated->filled_ns = 0; /* it may be half renewed */
		return false;
	}
	repeated->until_ns =
		lookup_wait_until(context->lookup, repeated->tid, repeated->sequence, now_ns);
	return true;
}

bool live_repeat_fill(struct live_context *context, const struct thread_state *record,
		      enum thread_state_kind state, struct repeated *repeated,
		      struct sample *sample)
{
	if (context->now.scan_time.now_ns >= repeated->until_ns &&
	    !repeated_renew(context, record, repeated))
		return false;
	*sample = repeated->samples[LOOKED_UP];
	sample_lengthen(sample, record_state_us(record, &context->now.scan_time, state) -
					sample->now.state_us);
	return true;
}

/* Hands over the sample of an earlier scan again: for the first of the scans that left it out, so
 * many. */
static void left_out_give(const struct live_repeat *repeat, struct repeated *repeated,
			  uint32_t count)
{
	struct sample sample;
	int64_t us;

	if (!count)
		return;
	sample = repeated->samples[GIVEN];
	us = repeated->left_out_us * count / repeated->left_out_count;
	sample.scan.repeats = count - 1;
	sample.scan.weight_us = us;
	sample_lengthen(&sample, us);
	repeated->left_out_us -= us;
	repeated->left_out_count -= count;
	if (sample.thread.tid != ABSENT)
		repeat->source->take_again(repeat->source->take_to, &sample);
}

/* True if another lookup of the same wait found something else. */
static bool wait_differs(const struct sample *earlier, const struct sample *sample)
{
	return earlier->thread.tid != sample->thread.tid ||
	       earlier->chain.text != sample->chain.text ||
	       earlier->blocker.tid != sample->blocker.tid ||
	       earlier->chain.root_tid != sample->chain.root_tid ||
	       earlier->chain.root_state != sample->chain.root_state ||
	       earlier->chain.root_why != sample->chain.root_why ||
	       earlier->chain.root_syscall != sample->chain.root_syscall ||
	       earlier->chain.root_waits_on != sample->chain.root_waits_on ||
	       earlier->wait.on != sample->wait.on || earlier->wait.why != sample->wait.why ||
	       earlier->file.name != sample->file.name;
}

/* Returns how many of the scans that left a wait out had it as the earlier sample has it, if this
 * one differs. All, if a switch has changed it: the first scan after that has looked. Else half
 * were nearer to the earlier sample, rounded up, as a scan stands for the time before it. */
static uint32_t earlier_count(const struct live_repeat *repeat, struct live_context *context,
			      const struct repeated *repeated)
{
	return chain_switched(repeat, context, &repeated->sleepers)
		       ? repeated->left_out_count
		       : (repeated->left_out_count + 1) / 2;
}

void live_repeat_given(const struct live_repeat *repeat, struct live_context *context,
		       struct repeated *repeated, struct sample *sample,
		       const struct chain_sleepers *sleepers)
{
	if (!sums_up(repeat))
		return;
	if (repeated->left_out_count && wait_differs(&repeated->samples[GIVEN], sample))
		left_out_give(repeat, repeated, earlier_count(repeat, context, repeated));
	sample->scan.repeats = repeated->left_out_count;
	sample->scan.weight_us += repeated->left_out_us;
	repeated->left_out_us = repeated->left_out_count = 0;
	repeated->samples[GIVEN] = *sample;
	sums_clear(&repeated->samples[GIVEN]);
	repeated->given_known = !sleepers || sleepers->known;
	if (sleepers)
		repeated->sleepers = *sleepers;
}

static void all_give(const struct live_repeat *repeat, struct repeated *repeated)
{
	left_out_give(repeat, repeated, repeated->left_out_count);
}

void live_repeat_settle(struct live_repeat *repeat)
{
	for (size_t i = 0; i < repeat->samples.count; i++)
		all_give(repeat, (struct repeated *)repeat->samples.entries[i]);
}

/* Hands over what earlier scans have left out of waits that have ended by now. */
static void ended_give(const struct live_repeat *repeat, int64_t now_ns)
{
	for (size_t i = 0; i < repeat->samples.count; i++)
		if (repeat->samples.entries[i]->used_ns < now_ns)
			all_give(repeat, (struct repeated *)repeat->samples.entries[i]);
}

void live_repeat_end_scan(struct live_repeat *repeat, const struct live_context *context)
{
	int64_t now_ns = context->now.scan_time.now_ns;

	/* such a scan has visited all waits */
	if (may_leave_out(repeat, context) && !live_repeat_leaves_out(repeat))
		ended_give(repeat, now_ns);
	if (context->now.housekeeping)
		cache_sweep(&repeat->samples, now_ns, REPEAT_IDLE_NS);
}

struct repeated *live_repeat_keep(struct live_repeat *repeat, const struct live_context *context,
				  const struct thread_state *record, const struct sample *sample,
				  bool compat)
{
	struct repeated *kept;
	bool added;

	if (!context_repeats(context) || sample->now.state != STATE_SLEEP || sample->wait.open ||
	    sample->io.dev || compat || !record->sched.tid || !record_settled(record))
		return NULL;
	if (repeat->samples.count == REPEATED_MAX && !cache_find(&repeat->samples, record->key))
		return NULL;
	repeat->samples.entry_bytes = sizeof(*kept);
	repeat->samples.entries_max = REPEATED_MAX;
	repeat->samples.drop = repeated_drop;
	kept = cache_get(&repeat->samples, record->key, context->now.scan_time.now_ns, &added);
	if (kept->tid != sample->thread.tid || kept->start_ns != sample->thread.start_ns ||
	    kept->sequence != record->sched.sequence_done)
		all_give(repeat, kept);
	*kept = (struct repeated){
		.entry = kept->entry,
		.left_out_us = kept->left_out_us,
		.left_out_count = kept->left_out_count,
		.out_ns = (int64_t)record->sched.out_ns,
		.filled_ns = context->now.scan_time.now_ns,
		.until_ns = lookup_wait_until(context->lookup, sample->thread.tid,
					      record->sched.sequence_done,
					      context->now.scan_time.now_ns),
		.sequence = record->sched.sequence_done,
		.needs = context->wants.needs,
		.tid = sample->thread.tid,
		.start_ns = sample->thread.start_ns,
		.sleepers = kept->sleepers, /* until the sample is given */
		.samples = kept->samples,
	};
	memcpy(kept->comm, record->identity.comm, sizeof(kept->comm));
	if (added)
		kept->samples =
			memory_get((sums_up(repeat) ? SAMPLES : GIVEN) * sizeof(*kept->samples));
	kept->samples[LOOKED_UP] = *sample;
	sums_clear(&kept->samples[LOOKED_UP]);
	return kept;
}

void live_repeat_clear(struct live_repeat *repeat)
{
	cache_done(&repeat->samples);
	index_clear(&repeat->changed.keys);
	index_clear(&repeat->changed.pids);
}
