/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The second half of a scan, at leisure: what each thread did at the scan time, and the samples of
 * wanted threads. They are made from the copies of live_capture.c, and from those of threads that
 * have slept since the last scan. */
#include "live/scan/live_namespace.h"
#include "live/scan/live_state.h"
#include "base/clock.h"
#include "base/memory.h"
#include "proc/proc.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SWEEP_ROUNDS 10 /* rounds from one sweep of totals to the next */
#define CROWD_LEAST 32	/* threads of a process that were captured off their CPUs */

/* Short waits stand for others of their process after so many rounds, and where scans are that
 * frequent: a report of few scans has all waits. */
#define SHORT_WAIT_NS (NS_PER_SECOND / 2)
#define SHARED_ROUNDS 1
#define SHARED_PERIOD_NS (NS_PER_SECOND / 10)

/* Records that a scan passes although it need not look at them: WALK_RECORDS, or one in WALK_PART
 * where that is more. Each touches memory that nothing else does. */
#define WALK_RECORDS 8192
#define WALK_PART 16

/* Sleepers are judged in turn for one part in TURN_SHARE of the time, and for at most TURN_MOST_NS
 * in a scan: some 10 000 in a second of those that slept before tsnap, until none is left. */
#define TURN_SHARE 20
#define TURN_MOST_NS (20 * NS_PER_MS)
#define GONE_LOOKS_FEW 25    /* looks for threads that are gone, in one housekeeping */
#define GONE_LOOKS 100	     /* looks where there are more records than threads */
#define GONE_LOOKS_MORE 1000 /* looks where there are over GONE_FEW more */
#define GONE_FEW 16

static void record_forget(struct live *live, const struct thread_state *record)
{
	if (!record->sched.tid) { /* the record has no key of the map */
		live_seed_remove(&live->context.seed, record->identity.tid);
		return;
	}
	thread_table_remove(&live->context.kernel.table, record);
	episodes_end(&live->episodes, record->key);
}

/* Reads from /proc the state of a thread with an ambiguous record, once for each switch: unless it
 * is runnable or parked, its state stays the same until the next switch. STATE_COUNT: the thread is
 * gone. */
static enum thread_state_kind ambiguous_resolve(struct live *live,
						const struct thread_state *record,
						enum thread_state_kind state)
{
	uint64_t sequence = record->sched.sequence_done << 8, *known;
	struct proc_stat stat;
	int64_t reported;

	known = index_put(&live->walk.ambiguous, record->identity.tid, NULL);
	if (*known >> 8 << 8 == sequence && *known & 0xff)
		return (enum thread_state_kind)((*known & 0xff) - 1);
	*known = 0;
	if (proc_stat_read(PROC, record->identity.tgid, record->identity.tid, &stat)) {
		if (!live->context.view.proc_whole)
			return state;
		/* gone: that was its last switch */
		record_forget(live, record);
		return STATE_COUNT;
	}
	reported = state_of_proc_letter(stat.state);
	if (reported == ABSENT)
		return state;
	/* a CPU that comes online unparks its threads, and no program sees them go to sleep */
	if (reported != STATE_RQ && reported != STATE_PARKED)
		*known = sequence | (uint64_t)(reported + 1);
	return (enum thread_state_kind)reported;
}

/* Returns the number of threads that are looked for in one housekeeping. */
static uint32_t gone_looks(const struct live *live)
{
	if (live->walk.unfit_threads >= 0)
		return GONE_LOOKS_FEW;
	return live->walk.unfit_threads < -GONE_FEW ? GONE_LOOKS_MORE : GONE_LOOKS;
}

/* True if the thread is there. kill(2) with signal 0 costs a tenth of a look at /proc; it is used
 * if both mean the same ids. */
static bool thread_is_there(const struct live *live, uint32_t tid)
{
	char path[32];

	if (live->context.kernel.host.pid_depth == 1)
		return !kill((pid_t)tid, 0) || errno != ESRCH;
	snprintf(path, sizeof(path), PROC "/%u", tid);
	return !access(path, F_OK) || errno != ENOENT;
}

/* True if it is this thread's turn to be looked for. */
static bool gone_turn(const struct live *live, const struct thread_state *record)
{
	return live->walk.gone_looks_left && record->sched.tid % live->walk.gone_turns ==
						     live->walk.rounds % live->walk.gone_turns;
}

/* True if the thread has gone without a probe's notice: a zombie that was waited for, or a last
 * switch that was missed (while one CPU makes a bpf(2) call, kernels run no program of a perf
 * tracepoint or kprobe there). Zombies are looked for in every round, the others in turn. */
static bool record_gone(struct live *live, const struct thread_state *record,
			enum thread_state_kind state)
{
	if (!live->context.now.housekeeping || !live->context.view.proc_whole ||
	    (state != STATE_ZOMBIE && !gone_turn(live, record)))
		return false;
	live->walk.gone_looks_left -= state != STATE_ZOMBIE;
	if (thread_is_there(live, record->identity.tid))
		return false;
	record_forget(live, record);
	return true;
}

static void housekeep_record(struct live *live, const struct thread_state *record)
{
	if (live->walk.sweep)
		totals_mark(&live->context.totals, record->identity.tid);
	if (live->context.config.descendants)
		live_processes_child(&live->processes, record);
}

/* True if it must be found out now whether the sleeping thread works. */
static bool sleeper_due(struct live *live, const struct thread_state *record)
{
	uint64_t key = awake_key(record, record->key);

	if (live->walk.walking)
		episodes_queue(&live->episodes, key, record->sched.sequence_done);
	else
		episodes_judge(&live->episodes, key, record->sched.sequence_done);
	return !live->walk.walking;
}

/* True if the copy has a sleep that is new, or nearly so. */
static bool is_short_wait(const struct live *live, const struct captured *copy)
{
	const struct live_scan_time *now = &live->context.now.scan_time;
	bool ambiguous;

	return copy->record.sched.tid &&
	       now->now_ns - (int64_t)copy->record.sched.out_ns < SHORT_WAIT_NS &&
	       captured_state(copy, &copy->record, now, &ambiguous) == STATE_SLEEP;
}

/* Returns how many threads of its process the sleeping one stands for in this scan; 0: others stand
 * for it. A scan looks at some of many short waits in one process, in turn (struct source, shares).
 * It looks at all long ones, as there may be few of them. */
static uint32_t stands_for(struct live *live, const struct captured *copy)
{
	const uint64_t *count;
	uint32_t shares;

	if (!live->walk.shares || !copy || !is_short_wait(live, copy))
		return 1;
	count = index_find(&live->walk.crowds, copy->record.identity.tgid);
	shares = count && *count >= live->walk.shares ? (uint32_t)*count / live->walk.shares : 1;
	if (!((copy->record.sched.tid + live->walk.scans) % shares))
		return shares;
	/* its turn comes while it waits */
	episodes_want(&live->episodes, &live->context, &copy->record);
	return 0;
}

/* Makes a sample of a record if it is wanted. copy: where the record was captured; or NULL. */
static void record_take(struct live *live, const struct thread_state *record,
			const struct captured *copy)
{
	struct thread_state completed;
	enum thread_state_kind state;
	uint32_t shares;
	bool ambiguous;

	record = live_seed_whole(record, &completed);
	if (!record)
		return;
	housekeep_record(live, record);
	/* the next capture has it */
	if (!copy && (!record_settled(record) || (live->context.wants.idle && record->sched.tid)))
		index_put(&live->walk.awake_next, awake_key(record, record->key), NULL);
	state = captured_state(copy, record, &live->context.now.scan_time, &ambiguous);
	if (ambiguous)
		state = ambiguous_resolve(live, record, state);
	if (state == STATE_COUNT || record_gone(live, record, state))
		return;
	if (!filter_wants_state(live->context.wants.filter, state))
		return;
	if (live->context.wants.work && state == STATE_SLEEP && !sleeper_due(live, record))
		return;
	shares = state == STATE_SLEEP ? stands_for(live, copy) : 1;
	if (shares)
		live_batch_add(live, record, copy, state, shares);
}

/* Does what need not be done at every tick. */
static void housekeep(struct live *live)
{
	if (!live->context.now.housekeeping)
		return;
	live->times.housekept_ns = live->context.now.scan_time.now_ns;
	live->walk.gone_looks_left = gone_looks(live);
	lookup_sweep(live->context.lookup, live->context.now.scan_time.now_ns);
	live_held_sweep(&live->held, live->context.now.scan_time.now_ns);
	runtime_locks_sweep(&live->runtime_locks, live->context.now.scan_time.now_ns);
}

/* True if the thread is one that users see. */
static bool record_known(struct live *live, const struct thread_state *record)
{
	return !live->context.view.translated || !record->sched.tid ||
	       live_namespace_meet(&live->context, record);
}

static void record_meet_as(struct live *live, const struct thread_state *record,
			   const struct captured *copy)
{
	if (!record_known(live, record))
		return;
	live->walk.walked++;
	if (live_is_own(&live->context, record->identity.tgid))
		return;
	if (!live_refuses(&live->context, record) || live->context.now.housekeeping ||
	    live->context.config.descendants)
		record_take(live, record, copy);
}

static void record_meet(void *to, const struct thread_state *record)
{
	record_meet_as(to, record, NULL);
}

/* Visits the episodes from the last to the first: the one that is visited may end. Those that began
 * in this scan have been visited. None is skipped when housekeeping is done, in case one is out of
 * date. */
static void episodes_visit(struct live *live,
			   void (*visit)(struct live *live, const struct captured *copy))
{
	bool skips = episodes_skip(&live->episodes) && live->context.now.capture->listed &&
		     !live->context.now.housekeeping;

	for (size_t i = live->episodes.count; i--;) {
		struct episode *episode = live->episodes.all[i];

		if (!skips)
			episodes_prefetch(&live->episodes, i);
		if (episode->wanted_ns != live->context.now.scan_time.now_ns &&
		    !(skips && episode_skip(&live->episodes, &live->context, episode,
					    live->batch.scan.weight_us)))
			visit(live, &episode->copy);
	}
}

static void off_cpu_visit(struct live *live,
			  void (*visit)(struct live *live, const struct captured *copy))
{
	const struct live_capture *capture = live->context.now.capture;

	for (size_t i = 0; i < capture->count; i++)
		if (!capture->threads[i].record.sched.on_cpu &&
		    !episodes_find(&live->episodes, capture->threads[i].record.key))
			visit(live, &capture->threads[i]);
	episodes_visit(live, visit);
}

static void copy_meet(struct live *live, const struct captured *copy)
{
	record_meet_as(live, &copy->record, copy);
}

static void crowd_count(struct live *live, const struct captured *copy)
{
	++*index_put(&live->walk.crowds, copy->record.identity.tgid, NULL);
}

static void short_wait_count(struct live *live, const struct captured *copy)
{
	if (is_short_wait(live, copy))
		crowd_count(live, copy);
}

static bool is_of_crowd(const struct live *live, const struct captured *copy)
{
	const uint64_t *count = index_find(&live->walk.crowds, copy->record.identity.tgid);

	return *count >= CROWD_LEAST;
}

static void few_meet(struct live *live, const struct captured *copy)
{
	if (!is_of_crowd(live, copy))
		copy_meet(live, copy);
}

static void crowd_meet(struct live *live, const struct captured *copy)
{
	if (is_of_crowd(live, copy))
		copy_meet(live, copy);
}

/* Makes samples of threads that were captured off their CPUs, or have slept since they were. Stacks
 * are read meanwhile, of threads that may run again any time: those of processes with many such
 * threads come last, and only in the first half of the period, so that such a process keeps no
 * other stacks from being read, in this scan or the next. */
static void off_cpu_take(struct live *live)
{
	index_empty(&live->walk.crowds);
	if (!live->stacks.needs) {
		if (live->walk.shares)
			off_cpu_visit(live, short_wait_count);
		off_cpu_visit(live, copy_meet);
		return;
	}
	off_cpu_visit(live, crowd_count);
	off_cpu_visit(live, few_meet);
	live->stacks.until_ns = live->context.now.scan_time.now_ns + live->context.period_ns / 2;
	off_cpu_visit(live, crowd_meet);
	live_batch_request(live);
	live->stacks.until_ns = 0;
}

/* Notes when the last thread had arrived on each CPU; /proc does not show that. */
static void arrivals_note(struct live *live)
{
	const struct live_capture *capture = live->context.now.capture;
	size_t cpus = (size_t)live->context.kernel.host.cpus_possible;
	int64_t *arrived_ns = live->walk.arrived_ns;

	if (live->context.proc)
		return;
	if (!arrived_ns)
		arrived_ns = live->walk.arrived_ns = memory_get(cpus * sizeof(*arrived_ns));
	memset(arrived_ns, 0, cpus * sizeof(*arrived_ns));
	for (size_t i = 0; i < capture->count; i++) {
		const struct thread_sched *sched = &capture->threads[i].record.sched;
		int64_t in_ns = (int64_t)sched->in_ns;

		if (sched->cpu < cpus && in_ns <= live->context.now.scan_time.now_ns &&
		    in_ns > arrived_ns[sched->cpu])
			arrived_ns[sched->cpu] = in_ns;
	}
	live->context.now.scan_time.arrived_ns = arrived_ns;
	live->context.now.scan_time.arrived_count = cpus;
}

/* Makes samples of what was captured: first of threads off their CPUs, as they may run again any
 * time; last of threads without a record, as one may have been made by now. */
static void awake_take(struct live *live)
{
	const struct thread_state *seed;
	size_t walked = live->walk.walked;
	uint64_t key, value;

	for (size_t i = 0; (!live->context.wants.idle || live->context.now.housekeeping) &&
			   i < live->context.now.capture->count;
	     i++)
		index_put(&live->walk.awake, live->context.now.capture->threads[i].record.key,
			  NULL);
	episodes_begin_scan(&live->episodes, &live->context, live->walk.rounds);
	live->walk.scans++;
	live->walk.shares = live->walk.rounds > SHARED_ROUNDS &&
					    live->context.period_ns <= SHARED_PERIOD_NS &&
					    episodes_may_stand(&live->context)
				    ? live->source.shares
				    : 0;
	arrivals_note(live);
	off_cpu_take(live);
	live_batch_request(live);
	for (size_t i = 0; i < live->context.now.capture->count; i++)
		if (live->context.now.capture->threads[i].record.sched.on_cpu)
			copy_meet(live, &live->context.now.capture->threads[i]);
	for (size_t at = 0;
	     live->context.view.translated && index_next(&live->walk.awake, &at, &key, &value);) {
		seed = key < SEED_KEY ? NULL
				      : live_seed_waiting(&live->context.seed, (uint32_t)key);
		if (seed)
			record_meet(live, seed);
	}
	live->walk.walked = walked;
}

/* Queues the thread of a record that a walk passes, to be judged in turn, unless that is done, or
 * this scan has visited it. */
static void sleeper_pass(struct live *live, const struct thread_state *record, uint64_t awake)
{
	uint64_t sequence = record->sched.sequence_done;

	if (task_state_kind(record->sched.state) == STATE_SLEEP &&
	    !episodes_judged(&live->episodes, awake, sequence) &&
	    !live_refuses(&live->context, record) && !index_find(&live->walk.awake, awake))
		episodes_queue(&live->episodes, awake, sequence);
}

/* True if this scan has visited the record's episode. If the record has changed since, the next
 * capture must have it: mostly it is on the changed list, too. */
static bool episode_met(struct live *live, const struct thread_state *record, uint32_t key)
{
	bool later = false;

	if (!record->sched.tid || !episodes_met(&live->episodes, record, key, &later))
		return false;
	if (later)
		index_put(&live->walk.awake_next, key, NULL);
	return true;
}

/* True if a walk need not read the record whole: it was visited in this scan, or the thread sleeps
 * and such threads are not wanted. */
static bool record_passes(void *to, const struct thread_state *record, uint32_t key)
{
	uint64_t awake = awake_key(record, key);
	struct live *live = to;
	bool wanted = live->context.view.translated || record->sched.exit_state ||
		      ((live->context.wants.idle || !record_settled(record)) &&
		       !live_refuses(&live->context, record)) ||
		      (live->context.now.housekeeping && gone_turn(live, record));
	bool met = live->episodes.count && (wanted || live->context.wants.work) &&
		   episode_met(live, record, key);

	if (wanted && !met && !index_find(&live->walk.awake, awake))
		return false;
	if (!wanted)
		housekeep_record(live, record);
	live->walk.walked += record_known(live, record);
	if (!wanted && live->context.wants.work)
		sleeper_pass(live, record, awake);
	return true;
}

static void seed_walked(void *to, const struct thread_state *record)
{
	if (!record_passes(to, record, 0))
		record_meet(to, record);
}

static uint32_t walk_limit(const struct live *live)
{
	size_t threads = live->walk.threads;

	if (!threads)
		return UINT32_MAX; /* their number is not known yet */
	return threads / WALK_PART > WALK_RECORDS ? (uint32_t)(threads / WALK_PART) : WALK_RECORDS;
}

static void round_begin(struct live *live)
{
	size_t threads = live->walk.threads, scans = threads / walk_limit(live) + 1;

	live->walk.walked = 0;
	live->walk.rounds += live->context.now.housekeeping;
	live->walk.gone_turns = (uint32_t)(threads / (scans * gone_looks(live))) + 1;
	live->walk.sweep = live->context.now.housekeeping && live->walk.rounds % SWEEP_ROUNDS == 0;
	if (live->walk.sweep)
		index_clear(&live->walk.ambiguous);
}

/* Ends a round: all records have been seen since it began. */
static void round_end(struct live *live)
{
	int64_t threads = host_threads_count() - (int64_t)live->walk.walked;

	live->walk.threads = live->walk.walked;
	live->walk.other_threads = live->context.view.translated && threads > 0 ? threads : 0;
	live->walk.unfit_threads = live->context.view.translated ? 0 : threads;
	if (live->walk.sweep)
		totals_sweep(&live->context.totals);
	live->walk.sweep = false;
}

/* Meets a record that this scan may have met: only if its thread slept then, as it has no sample
 * yet. */
static void sleeper_meet(void *to, const struct thread_state *record)
{
	struct live *live = to;
	bool ambiguous;

	if (record_settled(record) &&
	    record_state(record, &live->context.now.scan_time, &ambiguous) == STATE_SLEEP &&
	    !ambiguous)
		record_meet(live, record);
}

/* Judges the sleepers that are next in turn. */
static void sleepers_visit(struct live *live)
{
	const struct thread_visitor visitor = {NULL, sleeper_meet, live};
	int64_t most_ns = live->context.period_ns / TURN_SHARE;
	int64_t end_ns = clock_monotonic_ns() + (most_ns < TURN_MOST_NS ? most_ns : TURN_MOST_NS);
	const struct thread_state *seed;
	size_t walked = live->walk.walked;
	uint64_t key;

	while (episodes_next(&live->episodes, &key)) {
		if (index_find(&live->walk.awake, key) ||
		    (key < SEED_KEY && episodes_find(&live->episodes, (uint32_t)key)))
			continue;
		if (key < SEED_KEY)
			thread_table_visit(&live->context.kernel.table, (uint32_t)key, &visitor);
		else if ((seed = live_seed_waiting(&live->context.seed, (uint32_t)key)))
			sleeper_meet(live, seed);
		if (clock_monotonic_ns() >= end_ns)
			break;
	}
	live->walk.walked = walked;
}

/* Looks at records in turn, at limit of them at most. *end: the round has ended. */
static int records_walk(struct live *live, uint32_t limit, bool *end)
{
	const struct thread_visitor visitor = {record_passes, record_meet, live};
	int err = thread_table_walk(&live->context.kernel.table, &visitor, limit, end);

	if (!err && *end) {
		live_seed_visit(&live->context.seed, seed_walked, live);
		round_end(live);
	}
	return err;
}

/* Notes the records that the next captures must have, should they not be on the changed list. */
static void awake_turn_over(struct live *live)
{
	uint64_t key, value;

	index_empty(&live->walk.awake);
	index_empty(&live->walk.keys_next);
	for (size_t at = 0; index_next(&live->walk.awake_next, &at, &key, &value);)
		index_put(key < SEED_KEY ? &live->walk.keys_next : &live->walk.awake, key, NULL);
	index_empty(&live->walk.awake_next);
}

/* Makes samples of the records that this scan needs: of those captured, and where some may be
 * missing, of others. All records are looked at in turn as time goes, should a wake-up have been
 * missed. */
static int records_read(struct live *live)
{
	bool all = !live->context.now.capture->listed && !live->context.wants.idle;
	bool round_ended = false;
	int err = 0;

	if (all)
		thread_table_rewind(&live->context.kernel.table);
	if ((all || live->context.now.housekeeping) && !live->context.kernel.table.walked)
		round_begin(live);
	awake_take(live);
	live->walk.walking = true;
	if (all || live->context.now.housekeeping)
		err = records_walk(live, all ? UINT32_MAX : walk_limit(live), &round_ended);
	else if (live->context.wants.idle && live->context.view.translated)
		live_seed_visit(&live->context.seed, seed_walked, live);
	live->walk.walking = false;
	if (live->episodes.turn_count)
		sleepers_visit(live);
	live_batch_settle(live);
	episodes_end_scan(&live->episodes, &live->context, !err && round_ended);
	awake_turn_over(live);
	return err;
}

int live_scan_read(struct live *live)
{
	proc_values_pool_clear(&live->batch.proc_values);
	live_processes_check(&live->processes, live->context.now.scan_time.now_ns,
			     live->context.now.housekeeping);
	housekeep(live);
	return records_read(live);
}
