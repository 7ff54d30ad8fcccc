/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The batch of a scan that is being gathered: samples of records, completed by registers and
 * lookups as far as the filter wants them, and handed over whenever there are enough. */
#include "live/context/live_runq.h"
#include "live/scan/live_irq.h"
#include "live/scan/live_namespace.h"
#include "live/scan/live_state.h"
#include "live/scan/live_work.h"
#include "live/scan/episodes.h"
#include "base/clock.h"
#include "sample/needs_table.h"

#include <errno.h>
#include <sys/syscall.h>

/* Facts that a filter has of a record alone. */
#define KNOWN_EARLY (KNOWN_IDS | KNOWN_STATE | KNOWN_RECORD | KNOWN_EVENT | NEEDS_OF_RECORD)

/* Fills what the totals have new since the thread's previous sample; once for each sample. */
static void totals_fill(struct live *live, const struct thread_state *record, struct sample *sample)
{
	struct live_totals totals;

	if (sample->sums.cpu_us != ABSENT)
		return;
	/* an account of the dead has what a zombie used, where there is one */
	if (sample->now.state == STATE_ZOMBIE && live->context.wants.needs & NEED_PROCESSES)
		return;
	record_totals(record, &live->context.now.scan_time,
		      (enum thread_state_kind)sample->now.state, &totals);
	totals_take(&live->context.totals, &totals, sample);
}

static void irq_fill(const struct irq_seen *irqs, struct sample *sample)
{
	const struct irq_seen *seen;

	if (!irqs || sample->now.state != STATE_ON || sample->now.cpu == ABSENT)
		return;
	seen = &irqs[sample->now.cpu];
	if (seen->seen)
		sample->now.irq = live_irq_name(seen->number, seen->handler);
}

/* Fills what the scan has copied of the kernel's maps besides records. */
static void captured_fill(struct live *live, const struct thread_state *record,
			  struct sample *sample, uint64_t needs)
{
	struct live_capture *capture = live->context.now.capture;

	if (capture && needs & NEED_BLOCK)
		live_block_fill(&live->context.now.block, &capture->block, record,
				live->context.now.scan_time.now_ns, sample);
	if (capture && needs & NEED_IRQ)
		irq_fill(capture->irqs, sample);
}

static void proc_values_give(struct live *live, struct sample *sample, uint64_t needs)
{
	if (needs & NEEDS_PROC_VALUES && !sample->proc_values)
		sample->proc_values = proc_values_pool_take(&live->batch.proc_values);
}

/* Evaluates the filter: the facts that it needs of the sample are found out in turn until it can
 * decide. known: facts known so far. can: facts that can be found out now. */
static enum verdict sample_request(struct live *live, const struct thread_state *record,
				   struct sample *sample, const struct lookup_hint *hint,
				   uint64_t known, uint64_t can)
{
	enum verdict verdict = filter_eval(live->context.wants.filter, sample, known);
	uint64_t need;

	can &= live->context.wants.filter_needs & ~known;
	while (verdict == VERDICT_OPEN && (need = needs_first(can))) {
		if (need == NEED_TOTALS)
			totals_fill(live, record, sample);
		captured_fill(live, record, sample, need);
		proc_values_give(live, sample, need);
		episode_lookup(&live->context, record, sample, hint, need);
		sample_derive(sample, need);
		known |= need;
		can &= ~need;
		verdict = filter_eval(live->context.wants.filter, sample, known);
	}
	return verdict;
}

/* Completes a sample that the filter has not refused. False: it refuses it now. *compat: its call
 * is of a 32-bit program. */
static bool sample_complete(struct live *live, const struct thread_state *record,
			    struct sample *sample, bool *compat)
{
	bool left = record->sched.known & SCHED_SWITCHED_OUT && !record->sched.on_cpu;
	struct lookup_hint hint = {.since_ns = left ? (int64_t)record->sched.out_ns : 0,
				   .sequence = record->sched.sequence_done};
	enum thread_state_kind state = (enum thread_state_kind)sample->now.state;
	enum verdict verdict = VERDICT_ACCEPTED;

	if (live->context.wants.needs & NEED_SYSCALL) {
		record_call(record, &live->context.now.scan_time, state, sample, &hint);
		/* the file of a thread that runs says no more than that, until it sleeps again */
		if (record->sched.known & SCHED_SEEDED && record->sched.state &&
		    !sample->thread.kthread && sample->call.nr == ABSENT)
			episode_seed_call(&live->context, record, sample, &hint);
		*compat = hint.compat;
	}
	if (live->context.wants.filter_needs & ~(NEEDS_OF_RECORD | NEEDS_EARLY))
		verdict = sample_request(live, record, sample, &hint, KNOWN_EARLY | NEEDS_EARLY,
					 NEEDS_OF_CALL);
	if (verdict == VERDICT_REFUSED)
		return false;
	if (live->context.wants.needs & NEED_TOTALS)
		totals_fill(live, record, sample);
	proc_values_give(live, sample, live->context.wants.needs);
	captured_fill(live, record, sample, live->context.wants.needs);
	episode_lookup(&live->context, record, sample, &hint,
		       live_wakeups_needs(&live->wakeups, sample, live->context.wants.needs));
	sample_derive(sample, live->context.wants.needs);
	if (verdict != VERDICT_ACCEPTED && !(live->context.wants.filter_needs & NEEDS_SETTLED) &&
	    !filter_accepts(live->context.wants.filter, sample))
		return false;
	return true;
}

static void scan_fill(const struct scan *scan, uint32_t shares, struct sample *sample)
{
	sample->scan.time_us = scan->time_us;
	sample->scan.weight_us = scan->weight_us * shares;
	sample->scan.repeats = shares - 1;
}

/* True if the sample was made from the one that its episode keeps, and the filter wants it. */
static bool sample_repeat(struct live *live, struct episode *episode, uint32_t shares,
			  struct sample *sample)
{
	const struct thread_state *record = &episode->copy.record;

	if (!episode_fill(&live->context, episode, sample))
		return false;
	scan_fill(&live->batch.scan, shares, sample);
	if (!(live->context.wants.filter_needs & NEEDS_SETTLED) &&
	    !filter_accepts(live->context.wants.filter, sample))
		return false;
	live_work_note(&live->context, record, sample, false, true);
	if (live->context.wants.needs & NEED_TOTALS)
		totals_fill(live, record, sample);
	captured_fill(live, record, sample, live->context.wants.needs);
	live->batch.kept[sample - live->batch.samples] = episode;
	episode->wanted_ns = live->context.now.scan_time.now_ns;
	return true;
}

/* Gives back the memory of a refused sample: refused samples are many more than a batch holds. */
static void sample_refuse(struct live *live, struct sample *sample)
{
	proc_values_pool_return(&live->batch.proc_values, sample->proc_values);
	sample->proc_values = NULL;
}

static bool sample_fill(struct live *live, const struct thread_state *record, struct sample *sample)
{
	bool compat = false, wanted = sample_complete(live, record, sample, &compat);
	bool changes = waits_class_changes(lookup_waits(live->context.lookup), sample->thread.tid);
	struct episode *episode;

	live_work_note(&live->context, record, sample, compat, false);
	if (!live->context.wants.work || sample->now.state != STATE_SLEEP || (!wanted && !changes))
		return wanted;
	if (!record->sched.tid)
		index_put(&live->walk.awake_next, awake_key(record, 0), NULL);
	episode = episodes_want(&live->episodes, &live->context, record);
	if (episode && wanted && !changes &&
	    episode_keep(&live->episodes, &live->context, episode, sample, compat))
		live->batch.kept[sample - live->batch.samples] = episode;
	return wanted;
}

/* Notes a sample that the filter wants, for facts that can wait until the batch is settled. */
static void sample_note(struct live *live, const struct thread_state *record, uint32_t sample)
{
	live_chains_note(&live->chains, &live->context, record, sample);
	live_stacks_add(&live->stacks, record, sample);
}

/* Requests the registers that samples wait for, and completes these samples. */
void live_batch_request(struct live *live)
{
	struct thread_state *records[REQUESTS_MAX];

	if (!live->batch.requested_count)
		return;
	for (uint32_t i = 0; i < live->batch.requested_count; i++)
		records[i] = &live->batch.requested[i];
	pthread_mutex_lock(sampler_requesting(live->context.sampler));
	registers_fill(&live->context.kernel.requester, &live->context.kernel.table, records,
		       live->batch.requested_count);
	/* the scan goes on */
	live->context.totals.read_ns = clock_monotonic_ns();
	registers_want(&live->context.kernel.requester,
		       live->context.totals.read_ns + REGISTERS_MORE_NS);
	pthread_mutex_unlock(sampler_requesting(live->context.sampler));
	for (uint32_t i = 0; i < live->batch.requested_count; i++) {
		struct sample *sample = &live->batch.samples[live->batch.requested_sample[i]];

		if (sample_fill(live, &live->batch.requested[i], sample)) {
			sample_note(live, &live->batch.requested[i],
				    live->batch.requested_sample[i]);
			continue;
		}
		sample->thread.tid = ABSENT;
		live->batch.refused_count++;
	}
	live->batch.requested_count = 0;
}

/* Refuses samples by filters on stacks or chains, once these are there. */
static void late_filter(struct live *live)
{
	for (size_t i = 0;
	     live->context.wants.filter_needs & NEEDS_SETTLED && i < live->batch.scan.count; i++)
		if (live->batch.samples[i].thread.tid != ABSENT &&
		    !filter_accepts(live->context.wants.filter, &live->batch.samples[i])) {
			live->batch.samples[i].thread.tid = ABSENT;
			live->batch.refused_count++;
		}
}

/* Takes out samples that were refused when their registers, stacks or chains were there. */
static void batch_pack(struct live *live)
{
	size_t kept = 0;

	for (size_t i = 0; live->batch.refused_count && i < live->batch.scan.count; i++)
		if (live->batch.samples[i].thread.tid != ABSENT)
			live->batch.samples[kept++] = live->batch.samples[i];
	live->batch.scan.count -= live->batch.refused_count;
	live->batch.refused_count = 0;
}

/* Notes samples that later scans may skip. */
static void batch_keep(struct live *live)
{
	for (size_t i = 0; i < live->batch.scan.count; i++) {
		if (live->batch.kept[i])
			episode_deliver(&live->episodes, &live->context, live->batch.kept[i],
					&live->batch.samples[i],
					live->context.wants.needs & NEEDS_CHAINS
						? live_chains_sleepers(live->chains, i)
						: NULL);
	}
}

void live_batch_settle(struct live *live)
{
	live_batch_request(live);
	live_stacks_fill_pending(&live->stacks);
	live_chains_fill(&live->chains, &live->context, &live->host, live->batch.samples,
			 live->batch.scan.count);
	live_runq_fill(&live->host, live->batch.samples, live->batch.scan.count);
	late_filter(live);
	batch_keep(live);
	batch_pack(live);
}

/* Hands over what was gathered. */
static void batch_give(struct live *live)
{
	live_batch_settle(live);
	/* checked after the samples were read, so that the programs ran until then */
	if (live->context.now.housekeeping && !share_alive(&live->context.kernel.share))
		live->batch.err = -EOWNERDEAD;
	if (!live->batch.err)
		live->batch.err = live->source.take(live->source.take_to, &live->batch.scan);
	live->batch.scan.count = 0;
	proc_values_pool_clear(&live->batch.proc_values);
}

void live_batch_add(struct live *live, const struct thread_state *record,
		    const struct captured *copy, enum thread_state_kind state, uint32_t shares)
{
	struct lookup_hint hint = {.sequence = record->sched.sequence_done};
	/* where work is not wanted, episodes keep no samples */
	struct episode *episode =
		state == STATE_SLEEP && live->context.wants.work && record->sched.tid
			? episodes_find(&live->episodes, record->key)
			: NULL;
	struct sample *sample;
	bool lacking;

	if (episode && episodes_skip(&live->episodes) &&
	    episode_skip(&live->episodes, &live->context, episode, live->batch.scan.weight_us)) {
		live_work_note(&live->context, record, episode->samples, false, true);
		return;
	}
	if (live->batch.scan.count == SCAN_BATCH)
		batch_give(live);
	sample = &live->batch.samples[live->batch.scan.count];
	live->batch.kept[live->batch.scan.count] = NULL;
	if (episode && sample_repeat(live, episode, shares, sample)) {
		sample_note(live, record, (uint32_t)live->batch.scan.count++);
		return;
	}
	record_sample(record, &live->context.now.scan_time, state, sample);
	if (live->context.wants.needs & NEED_HELD)
		live_held_fill(&live->held, &live->context, record, copy ? &copy->held : NULL,
			       sample);
	scan_fill(&live->batch.scan, shares, sample);
	if (live->source.describes_host && sample->thread.comm &&
	    !strcmp(sample->thread.comm, LIVE_JVM_THREAD))
		live_host_note_jvm(&live->host, sample->thread.pid);
	if (live->source.describes_host && sample->thread.kthread != 1 &&
	    !live_is_own(&live->context, sample->thread.pid))
		live_host_note_go(&live->host, sample->thread.pid,
				  live->context.now.scan_time.now_ns);
	if (live->context.view.translated && live->context.wants.needs & NEED_WAKER)
		live_namespace_waker(&live->context, sample);
	if (sample_request(live, record, sample, &hint, KNOWN_EARLY, NEEDS_EARLY) ==
	    VERDICT_REFUSED) {
		sample_refuse(live, sample);
		return;
	}
	live->batch.scan.count++;
	lacking = !(copy && copy->requested) && live->context.wants.needs & NEED_SYSCALL &&
		  sample->thread.kthread != 1 &&
		  registers_lacking(&live->context.kernel.requester, record);
	if (!lacking) {
		if (sample_fill(live, record, sample)) {
			sample_note(live, record, (uint32_t)live->batch.scan.count - 1);
			return;
		}
		live->batch.scan.count--;
		sample_refuse(live, sample);
		return;
	}
	live->batch.requested[live->batch.requested_count] = *record;
	live->batch.requested_sample[live->batch.requested_count++] =
		(uint32_t)live->batch.scan.count - 1;
	if (live->batch.requested_count == REQUESTS_MAX)
		live_batch_request(live);
}
