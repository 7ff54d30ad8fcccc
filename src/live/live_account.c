/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/live_account.h"
#include "live/live_space.h"
#include "base/clock.h"
#include "base/memory.h"
#include "maps/process_totals.h"

#define EXIT_ZOMBIE_BIT 0x20u

static void dead_read(void *to, const struct process_key *key, const struct process_totals *totals)
{
	struct live *live = to;

	dead_table_read(&live->dead, key, totals, false);
}

static void dead_read_baseline(void *to, const struct process_key *key,
			       const struct process_totals *totals)
{
	struct live *live = to;

	dead_table_read(&live->dead, key, totals, true);
}

static void thread_gone(void *to, const struct totals_gone *gone)
{
	struct live *live = to;

	dead_table_take_off(&live->dead, gone);
}

void live_account_begin(struct live *live)
{
	if (!(live->context.wants.needs & NEED_PROCESSES))
		return;
	live->context.totals.gone = thread_gone;
	live->context.totals.to = live;
	/* threads outside of a container are not told of, and who attaches came later */
	if (live->context.wants.needs & NEED_TOTALS && !live->context.view.translated &&
	    !live->context.config.attach)
		cpu_busy_read(PROC, &live->busy_first);
	live->busy = live->busy_first;
	live->busy_late_us = (live->busy_first.at_ns - live->attached_ns) / NS_PER_US;
	process_totals_visit(live->context.kernel.compiled.maps[KERNEL_MAP_PROCESSES],
			     dead_read_baseline, live);
}

void live_account_done(struct live *live)
{
	dead_table_done(&live->dead);
}

void live_account_busy(const struct live *live, struct source_facts *facts)
{
	const struct cpu_busy *first = &live->busy_first, *last = &live->busy;

	facts->busy_us = cpu_busy_between(first, last);
	facts->busy_error_us =
		last->interrupt_us - first->interrupt_us + live->busy_error_us * first->cpus;
}

void live_account_missed(const struct live *live, struct source_facts *facts)
{
	struct source_missed *missed;

	source_facts_miss(facts,
			  "births and ends of processes by more names than tsnap tells apart",
			  live->dead.others);
	source_facts_miss(
		facts,
		"ends of threads that did not fit the map, so that their times are not known",
		live->dead.unknown);
	missed = source_facts_miss(facts,
				   "exact times of threads whose switches the kernel hides "
				   "(they don't add up to the time that went by)",
				   live->context.totals.hidden_count);
	missed->standing = missed->natural = true;
}

static void dead_move(void *to, const struct process_key *key, const struct process_totals *totals,
		      const struct process_totals *seconds)
{
	struct live *live = to;

	dead_table_read(&live->dead, key, totals, false);
	dead_table_read(&live->dead, key, seconds, true);
}

/* Both count for a while: a row's old one until it is read, its new one from there on. */
void live_account_move(struct live *live, const struct kernel *bigger)
{
	if (!(live->context.wants.needs & NEED_PROCESSES))
		return;
	process_totals_visit_both(live->context.kernel.compiled.maps[KERNEL_MAP_PROCESSES],
				  bigger->compiled.maps[KERNEL_MAP_PROCESSES], dead_move, live);
}

/* Of a thread, whatever it did. */
static bool account_wanted(const struct live *live, const struct sample *account)
{
	return !live->context.wants.filter->no_samples &&
	       filter_ask_thread(live->context.wants.filter, account, ~0ull) == VERDICT_ACCEPTED;
}

/* Who is told. */
struct telling {
	struct live *live;
	account_taker *take;
	void *to;
};

/* What does not change while the thread lives, and what it did since its previous sample. */
static void thread_account(const struct telling *telling, const struct thread_state *record)
{
	struct live *live = telling->live;
	struct lookup_hint hint = {.sequence = record->sched.sequence_done};
	uint64_t asked = live->context.wants.filter_needs & NEEDS_ANYTIME;
	struct live_totals totals;
	struct sample account;
	enum thread_doing doing;
	bool unsure;

	doing = record_doing(record, &live->context.now.moment, &unsure);
	/* it left its CPU, but not by a switch that a program saw: nobody knows when */
	if (unsure && doing == DOING_ON)
		doing = DOING_SLEEP;
	record_sample(record, &live->context.now.moment, doing, &account);
	record_totals(record, &live->context.now.moment, doing, &totals);
	account.state = account.state_us = account.cpu = account.waker_tid = ABSENT;
	lookup_fill(live->context.lookup, &account, &hint, asked, live->context.now.moment.now_ns);
	sample_derive(&account, asked);
	if (!account_wanted(live, &account) ||
	    (!(live->context.wants.needs & NEED_SLEEP) &&
	     totals_only_slept(&live->context.totals, &totals, &account))) {
		totals_mark(&live->context.totals, account.tid);
		return;
	}
	totals_take(&live->context.totals, &totals, &account);
	lookup_fill(live->context.lookup, &account, &hint,
		    live->context.wants.needs & NEEDS_ANYTIME, live->context.now.moment.now_ns);
	sample_derive(&account, live->context.wants.needs);
	telling->take(telling->to, &account);
}

static void record_account(void *to, const struct thread_state *record)
{
	const struct telling *telling = to;
	struct live *live = telling->live;
	struct thread_state completed;

	if (live->context.view.translated && record->sched.tid &&
	    !live_space_meet(&live->context, record))
		return;
	/* the dead are in the kernel's table */
	if (live_is_own(&live->context, record->identity.tgid) ||
	    record->sched.exit_state & EXIT_ZOMBIE_BIT)
		return;
	record = live_seed_whole(record, &completed);
	if (!record)
		return;
	thread_account(telling, record);
}

/* A walk of its own, beside those of scans, which go on where they were. */
static void threads_account(struct telling *telling)
{
	struct live *live = telling->live;
	struct thread_table *table = &live->context.kernel.table;
	uint64_t unseen = table->torn_count + table->unfinished_count;
	uint32_t walked = table->walked;
	int64_t late_us;
	int err;

	totals_unmark(&live->context.totals);
	live->sweep = false; /* which goes by what scans have marked */
	if (live->busy_first.cpus)
		cpu_busy_read(PROC, &live->busy);
	if (live->busy.cpus != live->busy_first.cpus)
		live->busy_first.cpus = 0; /* a CPU came or went: never again */
	live->context.now.moment.now_ns = clock_monotonic_ns();
	err = thread_table_scan(table, record_account, telling);
	table->walked = walked;
	live_seed_visit(&live->context.seed, record_account, telling);
	late_us = (clock_monotonic_ns() - live->busy.at_ns) / NS_PER_US;
	live->busy_error_us += live->busy_late_us + late_us;
	live->busy_late_us = late_us;
	live->context.totals.at_ns = clock_monotonic_ns();
	/* whoever was not seen is gone, if all was seen */
	if (!err && table->torn_count + table->unfinished_count == unseen)
		totals_sweep(&live->context.totals);
}

static void dead_account(const struct telling *telling)
{
	struct live *live = telling->live;
	bool totals = live->context.wants.needs & NEED_TOTALS;
	struct sample account;

	for (size_t at = 0; dead_table_tell(&live->dead, &at, totals, &account);) {
		if (account.uid != ABSENT)
			account.user = lookup_user(live->context.lookup, account.uid,
						   live->context.now.moment.now_ns);
		sample_derive(&account, live->context.wants.needs);
		if (account_wanted(live, &account))
			telling->take(telling->to, &account);
	}
}

void live_account(struct source *source, account_taker *take, void *to)
{
	struct live *live = (struct live *)source;
	struct telling telling = {live, take, to};

	if (!(live->context.wants.needs & NEED_PROCESSES))
		return;
	/* first: who is gone in the walk has ended before, or ends in the next account */
	process_totals_visit(live->context.kernel.compiled.maps[KERNEL_MAP_PROCESSES], dead_read,
			     live);
	if (live->context.wants.needs & NEED_TOTALS)
		threads_account(&telling);
	dead_account(&telling);
}
