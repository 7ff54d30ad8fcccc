/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One scan: the records that must be read, what each thread did at its moment, and the samples of
 * those that are wanted. */
#include "live_space.h"
#include "live_state.h"
#include "base/clock.h"
#include "base/memory.h"
#include "lookup/proc.h"
#include "sample/needs_table.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SWEEP_ROUNDS 10	     /* of forgotten totals */
#define GONE_LOOKS 100	     /* for threads that are gone, in one housekeeping, */
#define GONE_LOOKS_MORE 1000 /* or where there are so many more records than threads: */
#define GONE_FEW 16
#define WALK_RECORDS 50000 /* in one scan where only some need be looked at */

/* What a filter can be told before the registers of a thread are asked for: by its record, and by
 * these lookups; and what it can be told after that. */
#define NEEDS_RECORD (NEED_COMM | NEED_WAKER)
#define KNOWN_EARLY (KNOWN_IDS | KNOWN_STATE | KNOWN_RECORD | NEEDS_RECORD)
#define NEEDS_EARLY                                                                        \
	(NEED_TOTALS | NEED_COMMSUM | NEED_USER | NEED_CGROUP | NEED_PPID | NEED_CMDLINE | \
	 NEED_EXE | NEED_WAKER_COMM | NEED_WAKER_PID | NEED_PID_NS | NEEDS_PROC_VALUES |   \
	 NEED_BLOCK)
#define NEEDS_LATE (NEED_SYSCALL | NEED_FILE | NEED_FILENAMESUM)

/* A key of live->awake of a thread that has no record in the kernel's map yet; keys there are 32
 * bits. */
#define SEED_KEY (1ull << 32)

static uint64_t awake_key(const struct thread_state *record, uint32_t key)
{
	return record->sched.tid ? key : SEED_KEY | record->identity.tid;
}

static void record_forget(struct live *live, const struct thread_state *record)
{
	if (record->sched.tid)
		thread_table_remove(&live->kernel.table, record);
	else
		live_seed_remove(&live->seed, record->identity.tid);
}

/* What /proc says of a thread whose record is in doubt. Asked once for each switch: unless it is
 * runnable, it stays as it is until the next one. DOING_COUNT: the thread is gone. */
static enum thread_doing doubt_resolve(struct live *live, const struct thread_state *record,
				       enum thread_doing doing)
{
	uint64_t sequence = record->sched.sequence_done << 8, *known;
	struct thread_state now;
	struct proc_stat stat;
	int64_t told;

	/* on a CPU when it was read, and off it when that was looked at: no doubt */
	if (doing == DOING_ON && !thread_table_get(&live->kernel.table, record->key, &now) &&
	    now.sched.sequence_done != record->sched.sequence_done)
		return doing;
	known = index_put(&live->doubts, record->identity.tid, NULL);
	if (*known >> 8 << 8 == sequence && *known & 0xff)
		return (enum thread_doing)((*known & 0xff) - 1);
	*known = 0;
	if (proc_stat_read(PROC, record->identity.tgid, record->identity.tid, &stat)) {
		if (!live->proc_whole)
			return doing;
		/* gone: that was its last switch */
		record_forget(live, record);
		return DOING_COUNT;
	}
	told = state_of_proc_letter(stat.state);
	if (told == ABSENT)
		return doing;
	if (told != DOING_RQ)
		*known = sequence | (uint64_t)(told + 1);
	return (enum thread_doing)told;
}

static uint32_t gone_looks(const struct live *live)
{
	return live->unfit_threads < -GONE_FEW ? GONE_LOOKS_MORE : GONE_LOOKS;
}

/* Whether it is the thread's turn to be looked for. */
static bool gone_turn(const struct live *live, const struct thread_state *record)
{
	return live->gone_looks_left &&
	       record->sched.tid % live->gone_turns == live->rounds % live->gone_turns;
}

/* A signal that is none asks the kernel at a tenth of what /proc costs, if both mean the same ids.
 */
static bool thread_is_there(const struct live *live, uint32_t tid)
{
	char path[32];

	if (live->kernel.host.pid_depth == 1)
		return !kill((pid_t)tid, 0) || errno != ESRCH;
	snprintf(path, sizeof(path), PROC "/%u", tid);
	return !access(path, F_OK) || errno != ENOENT;
}

/* Whether the thread has gone without a probe's telling: a zombie that was waited for, or a last
 * switch that was missed (while one CPU makes a bpf(2) call, kernels run no program of a perf
 * tracepoint or kprobe there). Zombies are looked for every second, the others in turn. */
static bool record_gone(struct live *live, const struct thread_state *record,
			enum thread_doing doing)
{
	if (!live->keep_house || !live->proc_whole ||
	    (doing != DOING_ZOMBIE && !gone_turn(live, record)))
		return false;
	live->gone_looks_left -= doing != DOING_ZOMBIE;
	if (thread_is_there(live, record->identity.tid))
		return false;
	record_forget(live, record);
	return true;
}

static void house_keep_record(struct live *live, const struct thread_state *record)
{
	if (live->sweep)
		totals_mark(&live->totals, record->identity.tid);
	if (live->config->descendants &&
	    index_find(&live->filter->pids, record->identity.parent_tgid))
		filter_add_pid(live->filter, record->identity.tgid);
}

/* What is new since the thread's previous sample; asked for once. */
static void totals_fill(struct live *live, const struct thread_state *record, struct sample *sample)
{
	struct live_totals totals;

	if (sample->cpu_us != ABSENT)
		return;
	/* an account of the dead has what a zombie used, where there is one */
	if (sample->state == DOING_ZOMBIE && live->needs & NEED_PROCESSES)
		return;
	record_totals(record, &live->moment, (enum thread_doing)sample->state, &totals);
	totals_take(&live->totals, &totals, sample);
}

static void block_fill(struct live *live, const struct thread_state *record, struct sample *sample)
{
	live_block_fill(&live->block, &live->kernel, record, live->moment.now_ns, sample);
}

static void proc_values_give(struct live *live, struct sample *sample, uint64_t needs)
{
	if (needs & NEEDS_PROC_VALUES && !sample->proc_values)
		sample->proc_values = proc_values_room_take(&live->proc_values);
}

/* Whether the filter wants the sample: what it asks for is found out in turn until it can tell.
 * known: so far; can: what can be found out now. */
static enum verdict sample_ask(struct live *live, const struct thread_state *record,
			       struct sample *sample, const struct lookup_hint *hint,
			       uint64_t known, uint64_t can)
{
	enum verdict verdict = filter_ask(live->filter, sample, known);
	uint64_t need;

	can &= live->filter_needs;
	while (verdict == VERDICT_OPEN && (need = needs_first(can))) {
		if (need == NEED_TOTALS)
			totals_fill(live, record, sample);
		if (need == NEED_BLOCK)
			block_fill(live, record, sample);
		proc_values_give(live, sample, need);
		lookup_fill(live->lookup, sample, hint, need, live->moment.now_ns);
		sample_derive(sample, need);
		known |= need;
		can &= ~need;
		verdict = filter_ask(live->filter, sample, known);
	}
	return verdict;
}

/* Completes a sample that the filter has not refused. False: it refuses it now. */
static bool sample_fill(struct live *live, const struct thread_state *record, struct sample *sample)
{
	struct lookup_hint hint = {.sequence = record->sched.sequence_done};
	enum thread_doing doing = (enum thread_doing)sample->state;
	enum verdict verdict = VERDICT_ACCEPTED;

	if (live->needs & NEED_SYSCALL) {
		record_call(record, &live->moment, doing, sample, &hint.compat);
		if (record->sched.known & SCHED_SEEDED && doing != DOING_ZOMBIE &&
		    !sample->kthread && sample->syscall_nr == ABSENT)
			live_seed_call(&live->seed, sample, &hint.compat);
	}
	if (live->filter_needs & ~(NEEDS_RECORD | NEEDS_EARLY))
		verdict = sample_ask(live, record, sample, &hint, KNOWN_EARLY | NEEDS_EARLY,
				     NEEDS_LATE);
	if (verdict == VERDICT_REFUSED)
		return false;
	if (live->needs & NEED_TOTALS)
		totals_fill(live, record, sample);
	proc_values_give(live, sample, live->needs);
	if (live->needs & NEED_BLOCK)
		block_fill(live, record, sample);
	lookup_fill(live->lookup, sample, &hint, live->needs, live->moment.now_ns);
	sample_derive(sample, live->needs);
	return verdict == VERDICT_ACCEPTED || live->filter_needs & NEEDS_STACKS ||
	       filter_accepts(live->filter, sample);
}

/* Whether only a wake-up can change what the thread does: then its being listed as woken is enough
 * to notice. */
static bool record_settled(const struct thread_state *record)
{
	struct live_moment ever = {.now_ns = INT64_MAX};
	bool unsure;

	return !record->sched.on_cpu && !state_row(record_doing(record, &ever, &unsure))->active &&
	       !unsure;
}

/* What is on a CPU waits until all is read: then its CPU is looked at. */
static void record_defer(struct live *live, const struct thread_state *record)
{
	live->on_cpu = memory_grow(live->on_cpu, &live->on_cpu_capacity, live->on_cpu_count + 1,
				   sizeof(*live->on_cpu));
	live->on_cpu[live->on_cpu_count++] = *record;
	if (record->sched.cpu < (uint32_t)live->kernel.host.cpus_possible)
		live->wanted_cpus[record->sched.cpu] = 1;
}

/* Asks for the registers of those that wait for them, and completes their samples. */
static void asked_take(struct live *live)
{
	if (!live->asked_count)
		return;
	registers_fill(&live->kernel.asker, &live->kernel.table, live->asked, live->asked_count);
	for (uint32_t i = 0; i < live->asked_count; i++) {
		struct sample *sample = &live->samples[live->asked_sample[i]];

		if (sample_fill(live, &live->asked[i], sample)) {
			live_stacks_add(live, &live->asked[i], live->asked_sample[i]);
			continue;
		}
		sample->tid = ABSENT;
		live->refused_count++;
	}
	live->asked_count = 0;
	/* the scan goes on */
	registers_want(&live->kernel.asker, clock_monotonic_ns() + REGISTERS_MORE_NS);
}

static bool registers_lacking(const struct live *live, const struct thread_state *record,
			      const struct sample *sample)
{
	return live->needs & NEED_SYSCALL && live->kernel.asker.program >= 0 &&
	       sample->kthread != 1 && record->sched.known & SCHED_SWITCHED_OUT &&
	       !record->sched.on_cpu && !registers_there(record);
}

/* What asks for stacks is asked when they are there. */
static void stacks_filter(struct live *live)
{
	for (size_t i = 0; live->filter_needs & NEEDS_STACKS && i < live->part.count; i++)
		if (live->samples[i].tid != ABSENT &&
		    !filter_accepts(live->filter, &live->samples[i])) {
			live->samples[i].tid = ABSENT;
			live->refused_count++;
		}
}

/* Takes out those that were refused when their registers were there. */
static void part_pack(struct live *live)
{
	size_t kept = 0;

	for (size_t i = 0; live->refused_count && i < live->part.count; i++)
		if (live->samples[i].tid != ABSENT)
			live->samples[kept++] = live->samples[i];
	live->part.count -= live->refused_count;
	live->refused_count = 0;
}

/* Hands over what was gathered. */
static void part_give(struct live *live)
{
	asked_take(live);
	live_stacks_tell(live);
	stacks_filter(live);
	part_pack(live);
	/* asked after what is handed over was read: it was alive then */
	if (live->keep_house && !share_alive(&live->kernel.share))
		live->part_err = -EOWNERDEAD;
	if (!live->part_err)
		live->part_err = live->source.take(live->source.taker, &live->part);
	live->part.count = 0;
	proc_values_room_clear(&live->proc_values);
}

static void sample_add(struct live *live, const struct thread_state *record,
		       enum thread_doing doing)
{
	struct lookup_hint hint = {.sequence = record->sched.sequence_done};
	struct sample *sample;

	if (live->part.count == SCAN_PART)
		part_give(live);
	sample = &live->samples[live->part.count];
	record_sample(record, &live->moment, doing, sample);
	sample->time_us = live->part.time_us;
	sample->weight_us = live->part.weight_us;
	if (live->translated && live->needs & NEED_WAKER)
		live_space_waker(live, sample);
	if (sample_ask(live, record, sample, &hint, KNOWN_EARLY, NEEDS_EARLY) == VERDICT_REFUSED)
		return;
	live->part.count++;
	if (!registers_lacking(live, record, sample)) {
		if (sample_fill(live, record, sample))
			live_stacks_add(live, record, live->part.count - 1);
		else
			live->part.count--;
		return;
	}
	live->asked_sample[live->asked_count] = (uint32_t)live->part.count - 1;
	live->asked[live->asked_count++] = *record;
	if (live->asked_count == ASK_MAX)
		asked_take(live);
}

static void record_take(struct live *live, const struct thread_state *record)
{
	struct thread_state completed;
	enum thread_doing doing;
	bool unsure;

	if (!(record->identity.known & IDENTITY_NAME)) {
		completed = *record;
		if (live_seed_identity(&completed))
			return;
		record = &completed;
	}
	house_keep_record(live, record);
	if (!record_settled(record))
		index_put(&live->awake_next, awake_key(record, record->key), NULL);
	doing = record_doing(record, &live->moment, &unsure);
	if (unsure)
		doing = doubt_resolve(live, record, doing);
	if (doing == DOING_COUNT || record_gone(live, record, doing))
		return;
	if (!filter_wants_state(live->filter, doing))
		return;
	sample_add(live, record, doing);
}

/* What need not be done at every tick. */
static void house_keep(struct live *live)
{
	live->keep_house = live->moment.now_ns - live->housekept_ns >= HOUSEKEEPING_NS;
	if (!live->keep_house)
		return;
	live->housekept_ns = live->moment.now_ns;
	live->gone_looks_left = gone_looks(live);
	lookup_sweep(live->lookup, live->moment.now_ns);
	live_processes_again(live);
}

/* When this thread came on its CPU for this scan: whom it displaced left at that very moment. */
static int64_t own_in_ns(struct live *live)
{
	struct thread_table *table = &live->kernel.table;
	struct thread_state own;
	uint32_t key;

	return thread_table_key(table, live->own_tid, &key) || thread_table_get(table, key, &own)
		       ? 0
		       : (int64_t)own.sched.in_ns;
}

/* Whether the thread is one that users see. */
static bool record_known(struct live *live, const struct thread_state *record)
{
	return !live->translated || !record->sched.tid || live_space_meet(live, record);
}

/* Whether nobody asks for the thread, as its record tells. */
static bool record_refused(const struct live *live, const struct thread_state *record)
{
	return filter_looks_at_ids(live->filter) && record->identity.known & IDENTITY_NAME &&
	       filter_excludes(live->filter, record->identity.tgid, record->identity.tid);
}

static void record_meet(void *to, const struct thread_state *record)
{
	struct live *live = to;

	if (!record_known(live, record))
		return;
	live->walked++;
	if (record->identity.tgid == live->own_pid)
		return;
	if (record_refused(live, record) && !live->keep_house && !live->config->descendants)
		return;
	if (!record->sched.on_cpu) {
		record_take(live, record);
		return;
	}
	house_keep_record(live, record); /* a round may end before those on CPUs are taken */
	record_defer(live, record);
}

static void on_cpu_take(struct live *live)
{
	live->moment.tick_count = kernel_ticks_read(&live->kernel, live->wanted_cpus, live->ticks);
	for (size_t i = 0; i < live->on_cpu_count; i++)
		record_take(live, &live->on_cpu[i]);
	live->on_cpu_count = 0;
	memset(live->wanted_cpus, 0, (size_t)live->kernel.host.cpus_possible);
}

static void awake_add(void *to, uint32_t key)
{
	struct live *live = to;

	index_put(&live->awake, key, NULL);
}

/* Seeded ones come last: who has a record by now does not wait any more. */
static void awake_visit(struct live *live)
{
	const struct thread_visitor visitor = {NULL, record_meet, live};
	const struct thread_state *seed;
	size_t walked = live->walked;
	uint64_t key, value;

	for (size_t at = 0; index_next(&live->awake, &at, &key, &value);)
		if (key < SEED_KEY)
			thread_table_visit(&live->kernel.table, (uint32_t)key, &visitor);
	for (size_t at = 0; live->translated && index_next(&live->awake, &at, &key, &value);) {
		seed = key < SEED_KEY ? NULL : live_seed_waiting(&live->seed, (uint32_t)key);
		if (seed)
			record_meet(live, seed);
	}
	live->walked = walked;
}

/* Whether a walk need not read the record whole: it was visited in this scan, or the thread sleeps
 * and nobody asks for such. */
static bool record_passes(void *to, const struct thread_state *record, uint32_t key)
{
	struct live *live = to;

	if (index_find(&live->awake, awake_key(record, key))) {
		live->walked += record_known(live, record);
		return true;
	}
	if (live->translated || record->sched.exit_state ||
	    (live->keep_house && gone_turn(live, record)))
		return false;
	if (!record_refused(live, record) && (live->idle_wanted || !record_settled(record)))
		return false;
	house_keep_record(live, record);
	live->walked++;
	return true;
}

static void seed_walked(void *to, const struct thread_state *record)
{
	if (!record_passes(to, record, 0))
		record_meet(to, record);
}

static void round_begin(struct live *live)
{
	live->walked = 0;
	live->rounds += live->keep_house;
	live->gone_turns = (uint32_t)(live->threads / gone_looks(live)) + 1;
	live->sweep = live->keep_house && live->rounds % SWEEP_ROUNDS == 0;
	if (live->sweep)
		index_clear(&live->doubts);
}

/* All records have been seen since the round began. */
static void round_end(struct live *live)
{
	int64_t threads = host_threads_count() - (int64_t)live->walked;

	live->threads = live->walked;
	live->other_threads = live->translated && threads > 0 ? threads : 0;
	live->unfit_threads = live->translated ? 0 : threads;
	if (live->sweep)
		totals_sweep(&live->totals);
	live->sweep = false;
}

/* Looks at records in turn: all of them, or so many. */
static int records_walk(struct live *live, uint32_t limit)
{
	const struct thread_visitor visitor = {record_passes, record_meet, live};
	bool end;
	int err = thread_table_walk(&live->kernel.table, &visitor, limit, &end);

	if (!err && end) {
		live_seed_visit(&live->seed, seed_walked, live);
		round_end(live);
	}
	return err;
}

/* Hands over the records that this scan needs: all of them, or those of threads that were awake in
 * the last one or were woken since. All in turn as time goes, should a wake-up have been missed. */
static int records_read(struct live *live)
{
	bool listed = changed_reader_take(&live->kernel.changed, awake_add, live);
	bool all = !listed || live->idle_wanted;
	int err = 0;

	if (all) {
		thread_table_rewind(&live->kernel.table);
		index_clear(&live->awake);
	}
	if ((all || live->keep_house) && !live->kernel.table.walked)
		round_begin(live);
	awake_visit(live);
	if (all || live->keep_house)
		err = records_walk(live, all ? UINT32_MAX : WALK_RECORDS);
	asked_take(live);
	on_cpu_take(live);
	asked_take(live);
	live_stacks_tell(live);
	stacks_filter(live);
	part_pack(live);
	index_clear(&live->awake);
	live->awake = live->awake_next;
	live->awake_next = (struct index){0};
	return err;
}

int live_scan_read(struct live *live)
{
	live->moment.own_in_ns = own_in_ns(live);
	proc_values_room_clear(&live->proc_values);
	house_keep(live);
	return records_read(live);
}
