/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/scan/episodes.h"
#include "live/context/live_context.h"
#include "proc/syscalls.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/seldom.h"

#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define SAMPLES_MAX 4096	     /* 3 MB; 6 MB if scans skip samples */
#define RENEW_NS (8 * NS_PER_SECOND) /* limit of the time between whole lookups of a sample */
#define TURNS_MAX 65536		     /* limit of turn; a later walk meets the rest again */
#define KEYS_LEAST 4096

/* Waits that have lasted for wait_us are in a scan every look_ns only. Where no chains are followed
 * the last row is for all waits. */
static const struct {
	int64_t wait_us, look_ns;
} looks[EPISODE_LOOKS] = {
	{US_PER_SECOND / 2, NS_PER_SECOND / 10},
	{US_PER_SECOND, NS_PER_SECOND / 5},
	{2 * US_PER_SECOND, 2 * NS_PER_SECOND / 5},
	{4 * US_PER_SECOND, 4 * NS_PER_SECOND / 5},
};

/* Needs that each sample has anew, or that depend on more than the thread's sleep. */
#define NEEDS_ANEW (NEEDS_PROC_VALUES | NEED_PATH)

/* Needs whose facts are read of one episode. */
#define NEEDS_READ (NEED_FILE | (NEEDS_OF_WAIT & ~NEED_SERVES) | NEEDS_OF_APP)

enum { LOOKED_UP, DELIVERED, SAMPLES };

/* True if samples are kept. They are not where idle threads are sampled, too: these are many, and
 * little is looked up of each. A filter that needs totals or requests takes what is new of them
 * itself. */
static bool keeps_samples(const struct live_context *context)
{
	return context->wants.work && !(context->wants.needs & NEEDS_ANEW) &&
	       !(context->wants.filter_needs & (NEED_TOTALS | NEED_BLOCK)) &&
	       context->wants.needs & NEED_SYSCALL && !context->view.translated;
}

static bool sums_up(const struct episodes *episodes)
{
	return episodes->source && episodes->source->sums_up;
}

/* Each sample needs a stack of its own, and without its chain nothing tells whether a blocker would
 * still be the same. */
bool episodes_may_stand(const struct live_context *context)
{
	return keeps_samples(context) && !(context->wants.needs & NEEDS_STACKS) &&
	       (context->wants.needs & NEEDS_CHAINS) != NEED_BLOCKER;
}

bool episodes_may_skip(const struct episodes *episodes, const struct live_context *context)
{
	return sums_up(episodes) && episodes_may_stand(context);
}

/* True if a scan must have waits again, as the last one that had them was that long ago; notes it,
 * then. Of two scans that are as near to the time it does not matter which. */
static bool look_due(struct episodes *episodes, const struct live_context *context, size_t at)
{
	int64_t now_ns = context->now.scan_time.now_ns;

	if (now_ns - episodes->looked_ns[at] < looks[at].look_ns - context->period_ns / 2)
		return false;
	episodes->looked_ns[at] = now_ns;
	return true;
}

static void skip_choose(struct episodes *episodes, const struct live_context *context)
{
	bool chains = context->wants.needs & NEEDS_CHAINS;

	for (size_t at = chains ? 0 : EPISODE_LOOKS - 1; at < EPISODE_LOOKS; at++)
		if (!look_due(episodes, context, at)) {
			episodes->skipped_us = chains ? looks[at].wait_us : 0;
			return;
		}
}

/* Notes which records and processes the capture shows to have changed. Of a thread without a copy
 * (its ids are not wanted, or it has ended) the process may not be known. */
static void changed_note(struct episodes *episodes, const struct live_context *context)
{
	const struct live_capture *capture = context->now.capture;

	index_empty(&episodes->changed_keys);
	index_empty(&episodes->changed_pids);
	for (size_t i = 0; i < capture->count; i++) {
		index_put(&episodes->changed_keys, capture->threads[i].record.key, NULL);
		index_put(&episodes->changed_pids, capture->threads[i].record.identity.tgid, NULL);
	}
	for (size_t i = 0; i < capture->gone_count; i++) {
		const struct thread_state *record =
			thread_table_mapped(&context->kernel.table, capture->gone[i]);

		index_put(&episodes->changed_keys, capture->gone[i], NULL);
		if (record && __atomic_load_n(&record->sched.tid, __ATOMIC_RELAXED))
			index_put(&episodes->changed_pids,
				  __atomic_load_n(&record->identity.tgid, __ATOMIC_RELAXED), NULL);
	}
}

/* True if a switch since the last scan may have changed the chain. */
static bool chain_changed(const struct episodes *episodes, struct live_context *context,
			  const struct chain_sleepers *sleepers)
{
	if (!context->now.capture->listed)
		return sleepers->pid || !chain_sleepers_sleep(sleepers, context);
	if (sleepers->pid && index_find(&episodes->changed_pids, (uint64_t)sleepers->pid))
		return true;
	for (uint32_t i = 0; i < sleepers->count; i++)
		if (index_find(&episodes->changed_keys, sleepers->sleepers[i].key))
			return true;
	return false;
}

/* Makes times of a sample longer: the thread has slept on. */
static void sample_lengthen(struct sample *sample, int64_t us)
{
	if (sample->now.state_us != ABSENT)
		sample->now.state_us += us;
	if (sample->call.us != ABSENT)
		sample->call.us += us;
}

/* Delivers the last sample again: for the first `count` of the scans that skipped it. */
static void skipped_deliver(const struct episodes *episodes, struct episode *episode,
			    uint32_t count)
{
	struct sample sample;
	int64_t us;

	if (!count)
		return;
	sample = episode->samples[DELIVERED];
	us = episode->skipped_us * count / episode->skipped_count;
	sample.scan.repeats = count - 1;
	sample.scan.weight_us = us;
	sample_lengthen(&sample, us);
	episode->skipped_us -= us;
	episode->skipped_count -= count;
	if (sample.thread.tid != ABSENT)
		episodes->source->take(
			episodes->source->take_to,
			&(struct scan){.again = true, .samples = &sample, .count = 1});
}

void episodes_settle(const struct episodes *episodes)
{
	for (size_t i = 0; i < episodes->count; i++)
		skipped_deliver(episodes, episodes->all[i], episodes->all[i]->skipped_count);
}

struct episode *episodes_find(struct episodes *episodes, uint32_t key)
{
	uint32_t at = id_map_get(&episodes->at, key);

	return at ? episodes->all[at - 1] : NULL;
}

static struct episode *episode_begin(struct episodes *episodes, const struct captured *copy)
{
	struct episode *episode = memory_get(sizeof(*episode));

	episode->copy = *copy;
	episode->copy.round = episodes->round;
	episodes->all = memory_grow(episodes->all, &episodes->capacity, episodes->count + 1,
				    sizeof(struct episode *));
	episodes->all[episodes->count++] = episode;
	id_map_set(&episodes->at, copy->record.key, (uint32_t)episodes->count);
	return episode;
}

static void sample_forget(struct episodes *episodes, struct episode *episode)
{
	episodes->samples_count -= episode->samples != NULL;
	free(episode->samples);
	episode->samples = NULL;
	episode->may_be_skipped = false;
	episode->skipped_count = 0;
	episode->skipped_us = 0;
}

static void episode_end(struct episodes *episodes, size_t at)
{
	struct episode *episode = episodes->all[at], *last = episodes->all[--episodes->count];

	skipped_deliver(episodes, episode, episode->skipped_count);
	sample_forget(episodes, episode);
	episodes->all[at] = last;
	id_map_set(&episodes->at, last->copy.record.key, (uint32_t)at + 1);
	id_map_set(&episodes->at, episode->copy.record.key, 0);
	free(episode);
}

void episodes_end(struct episodes *episodes, uint32_t key)
{
	uint32_t at = id_map_get(&episodes->at, key);

	if (at)
		episode_end(episodes, at - 1);
}

/* True if the copy is of a thread that sleeps, and has since before the scan time. */
static bool is_asleep(const struct captured *copy)
{
	return !copy->moved && record_settled(&copy->record);
}

/* True if the thread has slept on since the earlier copy: it was captured for another reason. */
static bool goes_on(const struct captured *before, const struct captured *now)
{
	return is_asleep(now) && before->record.sched.tid == now->record.sched.tid &&
	       before->record.sched.sequence_done == now->record.sched.sequence_done &&
	       record_start_ns(&before->record) == record_start_ns(&now->record) &&
	       memcmp(before->record.identity.comm, now->record.identity.comm,
		      sizeof(now->record.identity.comm)) == 0;
}

static void captured_end(struct episodes *episodes, const struct captured *copy)
{
	struct episode *episode = episodes_find(episodes, copy->record.key);

	if (!episode)
		return;
	if (!goes_on(&episode->copy, copy)) {
		episodes_end(episodes, copy->record.key);
		return;
	}
	episode->copy = *copy;
	episode->copy.round = episodes->round;
}

/* Ends episodes that are over: any may be, where the changed list has lost some records. */
static void all_verify(struct episodes *episodes, struct thread_table *table)
{
	for (size_t i = episodes->count; i--;) {
		const struct thread_state *record = &episodes->all[i]->copy.record;

		if (!thread_table_is_asleep(table, record->key, record->sched.tid,
					    record->sched.sequence_done))
			episode_end(episodes, i);
	}
}

void episodes_begin_scan(struct episodes *episodes, struct live_context *context, uint32_t round)
{
	const struct live_capture *capture = context->now.capture;

	episodes->round = round;
	episodes->skipped_us = INT64_MAX;
	if (episodes_may_skip(episodes, context)) {
		skip_choose(episodes, context);
		changed_note(episodes, context);
	}
	while (capture->whole && episodes->count)
		episode_end(episodes, episodes->count - 1);
	for (size_t i = 0; episodes->count && i < capture->count; i++)
		captured_end(episodes, &capture->threads[i]);
	for (size_t i = 0; episodes->count && i < capture->gone_count; i++)
		episodes_end(episodes, capture->gone[i]);
	if (!capture->listed)
		all_verify(episodes, &context->kernel.table);
	for (size_t i = 0; context->wants.idle && i < capture->count; i++)
		if (is_asleep(&capture->threads[i]) &&
		    !episodes_find(episodes, capture->threads[i].record.key))
			episode_begin(episodes, &capture->threads[i]);
}

void episodes_end_scan(struct episodes *episodes, const struct live_context *context,
		       bool round_ended)
{
	for (size_t i = episodes->count; i--;) {
		const struct episode *episode = episodes->all[i];

		if ((!context->wants.idle && episode->wanted_ns != context->now.scan_time.now_ns) ||
		    (round_ended && episode->copy.round != episodes->round))
			episode_end(episodes, i);
	}
}

struct episode *episodes_want(struct episodes *episodes, struct live_context *context,
			      const struct thread_state *record)
{
	struct episode *episode;

	if (!record->sched.tid)
		return NULL;
	episode = episodes_find(episodes, record->key);
	if (!episode && (!record_settled(record) ||
			 !thread_table_is_asleep(&context->kernel.table, record->key,
						 record->sched.tid, record->sched.sequence_done)))
		return NULL;
	if (!episode)
		episode = episode_begin(episodes,
					&(struct captured){.record = *record, .requested = true});
	episode->wanted_ns = context->now.scan_time.now_ns;
	return episode;
}

bool episodes_met(struct episodes *episodes, const struct thread_state *record, uint32_t key,
		  bool *later)
{
	struct episode *episode = episodes_find(episodes, key);

	if (!episode)
		return false;
	episode->copy.round = episodes->round;
	*later = episode->copy.record.sched.sequence_done != record->sched.sequence_done;
	return true;
}

bool episode_skip(const struct episodes *episodes, struct live_context *context,
		  struct episode *episode, int64_t weight_us)
{
	int64_t now_ns = context->now.scan_time.now_ns;
	int64_t slept_ns = now_ns - (int64_t)episode->copy.record.sched.out_ns;

	if (!episode->may_be_skipped || now_ns >= episode->until_ns ||
	    (!episode->sleepers.firm && slept_ns / NS_PER_US < episodes->skipped_us) ||
	    chain_changed(episodes, context, &episode->sleepers))
		return false;
	episode->skipped_count++;
	episode->skipped_us += weight_us;
	episode->wanted_ns = now_ns;
	return true;
}

/* Returns how many switches of a running thread tsnap's own threads have made: the thread that
 * scans took its CPU, and it has it again; and this thread runs there now. */
static uint64_t own_switches(const struct thread_state *record)
{
	return !record->sched.on_cpu + (sched_getcpu() == (int)record->sched.cpu);
}

bool episode_lasts(struct live_context *context, const struct thread_state *record, bool runs)
{
	const struct thread_table *table = &context->kernel.table;
	struct thread_state copy;
	uint64_t begun;
	uint32_t tid, state;

	if (!record->sched.tid) /* seed: the kernel has a record from the first switch on */
		return live_seed_waiting(&context->seed, record->identity.tid);
	/* the facts are read before the record is, so that a switch before them is seen */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (table->mapped) {
		const struct thread_sched *now = &table->mapped[record->key].sched;

		begun = __atomic_load_n(&now->sequence_begun, __ATOMIC_ACQUIRE);
		tid = __atomic_load_n(&now->tid, __ATOMIC_RELAXED);
		state = __atomic_load_n(&now->state, __ATOMIC_RELAXED);
	} else {
		if (thread_table_get(&context->kernel.table, record->key, &copy))
			return false;
		begun = copy.sched.sequence_begun;
		tid = copy.sched.tid;
		state = copy.sched.state;
	}
	/* state: a thread that went to sleep was not displaced */
	return tid == record->sched.tid &&
	       (begun == record->sched.sequence_done ||
		(runs && !state && begun - record->sched.sequence_done <= own_switches(record))) &&
	       (record->sched.on_cpu || thread_table_lasts(table, record));
}

/* Looks up what needs names. False: the thread has run since its record was made, and what
 * its process alone knows was dropped. */
static bool lookup_lasting(struct live_context *context, const struct thread_state *record,
			   struct sample *sample, const struct lookup_hint *hint, uint64_t needs)
{
	struct sample_fd file = sample->file;
	const struct sample_wait wait = sample->wait;
	const struct sample_net net = sample->net;
	const struct sample_app app = sample->app;
	bool runs = sample->now.state == STATE_ON, ran = false;
	struct sample_wait judged;
	int64_t fd;

	/* what is read of a thread that has run already is not kept */
	if (needs & NEEDS_READ && !episode_lasts(context, record, runs)) {
		needs &= ~NEEDS_READ;
		ran = true;
		context->later_lookups += sample->call.nr != ABSENT;
	}
	lookup_fill(context->lookup, sample, hint, needs, context->now.scan_time.now_ns);
	/* the words of a thread that tsnap took the CPU from: it must not have one again */
	if (runs && memcmp(&app, &sample->app, sizeof(app)) != 0 &&
	    !episode_lasts(context, record, false))
		sample->app = app;
	if (!(needs & NEEDS_READ) ||
	    (!memcmp(&file, &sample->file, offsetof(struct sample_fd, serves)) &&
	     !memcmp(&app, &sample->app, sizeof(app)) && net.word == sample->net.word &&
	     wait.on == sample->wait.on && wait.wchan == sample->wait.wchan &&
	     wait.inflight == sample->wait.inflight))
		return !ran;
	if (episode_lasts(context, record, runs))
		return true;
	/* the descriptor is the record's, unless the stack showed which of two it is, and so is
	 * the class, which is that of the call */
	judged = sample->wait;
	sample->wait = wait;
	sample->wait.why = judged.why;
	sample->wait.before_us = judged.before_us;
	fd = syscall_fd_to(sample->call.nr, hint->compat, sample->call.arg) < 0 ? sample->file.fd
										: ABSENT;
	/* a thread serves a connection for longer than a wait */
	file.serves = sample->file.serves;
	sample->file = file;
	sample->file.fd = fd;
	sample->net = net;
	sample->app = app;
	context->later_lookups++;
	return false;
}

/* Fills what is known of a thread's words although it runs, or has run. */
static void running_words_fill(struct live_context *context, const struct thread_state *record,
			       struct sample *sample, uint64_t needs)
{
	const struct live_scan_time *scan_time = &context->now.scan_time;
	const struct live_capture *capture = context->now.capture;
	const struct cpu_tick *tick = capture && capture->memory && sample->now.state == STATE_ON
					      ? record_tick(record, scan_time)
					      : NULL;
	const struct memory_look *memory = tick ? &capture->memory[tick - scan_time->ticks] : NULL;
	struct app_look look = {0};

	if (memory && memory->tick_ns == tick->tick_ns && memory->tid == tick->tid)
		look = (struct app_look){memory->data, memory->bytes};
	apps_fill_running(lookup_apps(context->lookup), sample, needs, scan_time->now_ns, &look);
}

void episode_lookup(struct live_context *context, const struct thread_state *record,
		    struct sample *sample, const struct lookup_hint *hint, uint64_t needs)
{
	const struct sample_app app = sample->app;

	if (!lookup_lasting(context, record, sample, hint, needs) ||
	    (sample->now.state == STATE_ON && !memcmp(&app, &sample->app, sizeof(app))))
		running_words_fill(context, record, sample, needs);
}

void episode_seed_call(struct live_context *context, const struct thread_state *record,
		       struct sample *sample, struct lookup_hint *hint)
{
	live_seed_call(&context->seed, sample, hint);
	if (episode_lasts(context, record, false))
		return;
	hint->no_call = false;
	if (sample->call.nr == ABSENT)
		return;
	sample->call.nr = ABSENT;
	for (int i = 0; i < SAMPLE_ARG_COUNT; i++)
		sample->call.arg[i] = ABSENT;
	context->later_lookups++;
}

void episodes_describe(const struct live_context *context, struct source_status *facts)
{
	struct source_missed *missed = source_status_miss_any(
		facts, "lookups of files, connections and waits dropped: the thread ran meanwhile",
		context->later_lookups);

	if (missed)
		missed->natural = true;
}

static void holds_until(struct episode *episode, struct live_context *context)
{
	const struct thread_state *record = &episode->copy.record;

	episode->until_ns = waits_until(lookup_waits(context->lookup), record->identity.tid,
					record->sched.sequence_done, context->now.scan_time.now_ns);
}

/* Reads again what the wait is for. True if the kept sample then holds for some time again. */
static SELDOM bool sample_renew(struct live_context *context, struct episode *episode)
{
	const struct thread_state *record = &episode->copy.record;
	const struct lookup_hint hint = {.sequence = record->sched.sequence_done};
	struct sample *sample = &episode->samples[LOOKED_UP];
	int64_t now_ns = context->now.scan_time.now_ns;

	if (now_ns - episode->filled_ns >= RENEW_NS ||
	    !waits_renew(lookup_waits(context->lookup), sample, &hint, context->wants.needs,
			 now_ns) ||
	    !episode_lasts(context, record, false)) {
		episode->filled_ns = 0; /* it may be half renewed */
		return false;
	}
	sample->wait.onsum = NULL; /* what it is made of may have changed */
	sample_derive(sample, context->wants.needs);
	holds_until(episode, context);
	return true;
}

bool episode_fill(struct live_context *context, struct episode *episode, struct sample *sample)
{
	if (!episode->samples || !keeps_samples(context) ||
	    (context->now.scan_time.now_ns >= episode->until_ns && !sample_renew(context, episode)))
		return false;
	*sample = episode->samples[LOOKED_UP];
	if (sample->now.state_us == ABSENT)
		sample->now.state_us = 0;
	sample_lengthen(sample, record_state_us(&episode->copy.record, &context->now.scan_time,
						STATE_SLEEP) -
					sample->now.state_us);
	return true;
}

/* Makes times absent that a sample has since the thread's previous one. */
static void sums_clear(struct sample *sample)
{
	sample->sums = sample_absent()->sums;
}

bool episode_keep(struct episodes *episodes, struct live_context *context, struct episode *episode,
		  const struct sample *sample, bool compat)
{
	if (!keeps_samples(context) || sample->wait.open || sample->io.dev || compat ||
	    (!episode->samples && episodes->samples_count == SAMPLES_MAX))
		return false;
	if (!episode->samples) {
		episode->samples = memory_get((sums_up(episodes) ? SAMPLES : DELIVERED) *
					      sizeof(*episode->samples));
		episodes->samples_count++;
	}
	episode->samples[LOOKED_UP] = *sample;
	sums_clear(&episode->samples[LOOKED_UP]);
	episode->filled_ns = context->now.scan_time.now_ns;
	holds_until(episode, context);
	return true;
}

/* True if another lookup of the same wait found something else. */
static bool wait_differs(const struct sample *earlier, const struct sample *sample)
{
	return earlier->thread.tid != sample->thread.tid ||
	       memcmp(&earlier->chain, &sample->chain, sizeof(sample->chain)) != 0 ||
	       earlier->blocker.tid != sample->blocker.tid || earlier->wait.on != sample->wait.on ||
	       earlier->wait.why != sample->wait.why || earlier->net.word != sample->net.word ||
	       earlier->file.name != sample->file.name;
}

/* Returns how many of the skipped scans belong to the last sample, if the new one differs. All of
 * them, if a switch has changed the wait: the first scan after it was not skipped. Else the change
 * may have come at any time: half of them, rounded up. */
static uint32_t earlier_count(const struct episodes *episodes, struct live_context *context,
			      const struct episode *episode)
{
	return chain_changed(episodes, context, &episode->sleepers)
		       ? episode->skipped_count
		       : (episode->skipped_count + 1) / 2;
}

void episode_deliver(const struct episodes *episodes, struct live_context *context,
		     struct episode *episode, struct sample *sample,
		     const struct chain_sleepers *sleepers)
{
	if (!sums_up(episodes))
		return;
	if (episode->skipped_count && wait_differs(&episode->samples[DELIVERED], sample))
		skipped_deliver(episodes, episode, earlier_count(episodes, context, episode));
	sample->scan.repeats += episode->skipped_count;
	sample->scan.weight_us += episode->skipped_us;
	episode->skipped_us = episode->skipped_count = 0;
	episode->samples[DELIVERED] = *sample;
	sums_clear(&episode->samples[DELIVERED]);
	episode->may_be_skipped = !sleepers || sleepers->known;
	if (sleepers)
		episode->sleepers = *sleepers;
}

void episodes_forget_samples(struct episodes *episodes)
{
	for (size_t i = 0; i < episodes->count; i++)
		sample_forget(episodes, episodes->all[i]);
}

static void judged_fit(struct episodes *episodes, uint64_t key)
{
	size_t before = episodes->judged_count, count = before ? before : KEYS_LEAST;

	if (key < before)
		return;
	while (count <= key)
		count *= 2;
	episodes->judged = memory_resize(episodes->judged, count, sizeof(*episodes->judged));
	memset(episodes->judged + before, 0, (count - before) * sizeof(*episodes->judged));
	episodes->judged_count = count;
}

bool episodes_judged(const struct episodes *episodes, uint64_t key, uint64_t sequence)
{
	const uint64_t *far = key > UINT32_MAX ? index_find(&episodes->judged_far, key) : NULL;

	if (key > UINT32_MAX)
		return far && *far == (uint32_t)sequence + 1;
	return key < episodes->judged_count && episodes->judged[key] == (uint32_t)sequence + 1;
}

bool episodes_judge(struct episodes *episodes, uint64_t key, uint64_t sequence)
{
	bool judged = episodes_judged(episodes, key, sequence);
	uint32_t episode = (uint32_t)sequence + 1;

	if (key > UINT32_MAX) {
		*index_put(&episodes->judged_far, key, NULL) = episode;
		return judged;
	}
	judged_fit(episodes, key);
	episodes->judged[key] = episode;
	return judged;
}

void episodes_queue(struct episodes *episodes, uint64_t key, uint64_t sequence)
{
	if (episodes->turn_count == TURNS_MAX || episodes_judge(episodes, key, sequence))
		return;
	if (!episodes->turn)
		episodes->turn = memory_get(TURNS_MAX * sizeof(*episodes->turn));
	episodes->turn[(episodes->turn_first + episodes->turn_count++) % TURNS_MAX] = key;
}

bool episodes_next(struct episodes *episodes, uint64_t *key)
{
	if (!episodes->turn_count)
		return false;
	*key = episodes->turn[episodes->turn_first];
	episodes->turn_first = (episodes->turn_first + 1) % TURNS_MAX;
	episodes->turn_count--;
	return true;
}

void episodes_clear(struct episodes *episodes)
{
	episodes_forget_samples(episodes);
	while (episodes->count)
		episode_end(episodes, episodes->count - 1);
	free(episodes->all);
	id_map_clear(&episodes->at);
	index_clear(&episodes->changed_keys);
	index_clear(&episodes->changed_pids);
	index_clear(&episodes->judged_far);
	free(episodes->judged);
	free(episodes->turn);
	*episodes = (struct episodes){.source = episodes->source};
}
