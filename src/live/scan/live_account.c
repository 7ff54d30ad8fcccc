/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/context/live_host.h"
#include "live/scan/live_account.h"
#include "live/scan/live_namespace.h"
#include "base/clock.h"
#include "base/memory.h"
#include "maps/process_totals.h"

#include <string.h>

#define EXIT_ZOMBIE_BIT 0x20u

static void dead_read(void *to, const struct process_key *key, const struct process_totals *totals)
{
	struct live_accounts *accounts = to;

	dead_table_read(&accounts->dead, key, totals, false);
}

static void dead_read_baseline(void *to, const struct process_key *key,
			       const struct process_totals *totals)
{
	struct live_accounts *accounts = to;

	dead_table_read(&accounts->dead, key, totals, true);
}

static void thread_gone(void *to, const struct totals_gone *gone)
{
	struct live_accounts *accounts = to;

	dead_table_take_off(&accounts->dead, gone);
}

void live_accounts_begin(struct live_accounts *accounts, struct live_context *context)
{
	accounts->context = context;
	if (!(accounts->context->wants.needs & NEED_PROCESSES))
		return;
	accounts->dead.ended_ns = context->totals.reported_ns;
	if (!context->proc) /* there the dead are not counted */
		accounts->context->totals.gone = thread_gone;
	accounts->context->totals.to = accounts;
	cpu_busy_read(PROC, &accounts->first);
	accounts->busy = accounts->first;
	accounts->late_us = (accounts->first.at_ns - context->totals.reported_ns) / NS_PER_US;
	if (context->wants.needs & NEED_INTERRUPTS)
		accounts->taken_count = live_taken_read(context, accounts->taken);
	process_totals_visit(accounts->context->kernel.compiled.maps[KERNEL_MAP_PROCESSES],
			     dead_read_baseline, accounts);
}

void live_accounts_done(struct live_accounts *accounts)
{
	dead_table_done(&accounts->dead);
}

void live_accounts_busy(const struct live_accounts *accounts, struct source_status *status)
{
	const struct cpu_busy *first = &accounts->first, *last = &accounts->busy;
	const struct live_context *context = accounts->context;

	status->busy_us = cpu_busy_between(first, last);
	/* threads outside of a container are not reported, and an attached sampler came later */
	status->busy_checks = context && context->wants.needs & NEED_TOTALS &&
			      !context->view.translated && !context->config.attach &&
			      !context->proc;
	status->busy_error_us =
		last->interrupt_us - first->interrupt_us + accounts->error_us * first->cpus;
}

void live_accounts_missed(const struct live_accounts *accounts, struct source_status *status)
{
	struct source_missed *missed;

	source_status_miss(status,
			   "events of processes (fork, exit) by more names than tsnap tells apart",
			   accounts->dead.others);
	source_status_miss(status,
			   "threads that ended and did not fit the map: their times are not known",
			   accounts->dead.unknown);
	missed = source_status_miss(status,
				    "exact times of threads whose switches the kernel hides "
				    "(they don't add up to the elapsed time)",
				    accounts->context->totals.hidden_count);
	missed->standing = missed->natural = true;
}

static void dead_move(void *to, const struct process_key *key, const struct process_totals *totals,
		      const struct process_totals *seconds)
{
	struct live_accounts *accounts = to;

	dead_table_read(&accounts->dead, key, totals, false);
	dead_table_read(&accounts->dead, key, seconds, true);
}

/* Both tables count for a while: a row's old one until it is read, its new one from then on. */
void live_accounts_move(struct live_accounts *accounts, const struct kernel *bigger)
{
	if (!(accounts->context->wants.needs & NEED_PROCESSES))
		return;
	process_totals_visit_both(accounts->context->kernel.compiled.maps[KERNEL_MAP_PROCESSES],
				  bigger->compiled.maps[KERNEL_MAP_PROCESSES], dead_move, accounts);
}

/* True if the filter wants the account of a thread, whatever it did. */
static bool account_wanted(const struct live_accounts *accounts, const struct sample *account)
{
	return !accounts->context->wants.filter->no_samples &&
	       filter_eval_thread(accounts->context->wants.filter, account, ~0ull) ==
		       VERDICT_ACCEPTED;
}

/* Destination of accounts of the time up to end_ns. */
struct reporting {
	struct live_accounts *accounts;
	int64_t end_ns;
	account_callback *take;
	void *to;
};

/* Returns the end for a thread that has not been switched since; else the present scan time. Of
 * such a thread more is known than is reported now: totals_take() leaves the rest. */
static int64_t record_end_ns(const struct reporting *reporting, const struct thread_state *record)
{
	const struct thread_sched *sched = &record->sched;
	int64_t switched_ns = (int64_t)(sched->on_cpu ? sched->in_ns : sched->out_ns);

	return switched_ns <= reporting->end_ns
		       ? reporting->end_ns
		       : reporting->accounts->context->now.scan_time.now_ns;
}

/* Makes an account of a thread: what does not change while it lives, and what it did since its
 * previous sample. */
static void thread_account(const struct reporting *reporting, const struct thread_state *record)
{
	struct live_accounts *accounts = reporting->accounts;
	struct lookup_hint hint = {.sequence = record->sched.sequence_done};
	uint64_t requested = accounts->context->wants.filter_needs & NEEDS_ANYTIME;
	struct live_scan_time scan_time = accounts->context->now.scan_time;
	struct live_totals totals;
	struct sample account;
	enum thread_state_kind state;
	bool ambiguous;

	scan_time.now_ns = record_end_ns(reporting, record);
	state = record_state(record, &scan_time, &ambiguous);
	/* the thread left its CPU, but not by a switch that a program saw: the time is not known */
	if (ambiguous && state == STATE_ON)
		state = STATE_SLEEP;
	record_totals(record, &scan_time, state, &totals);
	totals.at_ns = reporting->end_ns;
	/* Most threads of a host have only slept: the filter needs no sample of them. */
	if (!(accounts->context->wants.needs & NEED_SLEEP) &&
	    totals_only_slept(&accounts->context->totals, &totals, record->identity.tid,
			      record_start_ns(record))) {
		totals_mark(&accounts->context->totals, record->identity.tid);
		return;
	}
	record_sample(record, &scan_time, state, &account);
	account.now.state = account.now.state_us = account.now.cpu = account.waker.tid = ABSENT;
	lookup_fill(accounts->context->lookup, &account, &hint, requested,
		    accounts->context->now.scan_time.now_ns);
	sample_derive(&account, requested);
	if (!account_wanted(accounts, &account)) {
		totals_mark(&accounts->context->totals, account.thread.tid);
		return;
	}
	totals_take(&accounts->context->totals, &totals, &account);
	lookup_fill(accounts->context->lookup, &account, &hint,
		    accounts->context->wants.needs & NEEDS_ANYTIME,
		    accounts->context->now.scan_time.now_ns);
	sample_derive(&account, accounts->context->wants.needs);
	reporting->take(reporting->to, &account);
}

/* True if the thread has only slept since its last account, and its sleep is not wanted: so have
 * most threads of a host, and the two cache lines that a walk has loaded show it. */
static bool account_passes(void *to, const struct thread_state *record, uint32_t key)
{
	const struct reporting *reporting = to;
	const struct live_context *context = reporting->accounts->context;
	const struct thread_sched *sched = &record->sched;
	struct live_totals totals;

	(void)key;
	if (context->wants.needs & NEED_SLEEP || context->view.translated || sched->on_cpu ||
	    sched->exit_state || task_state_kind(sched->state) != STATE_SLEEP ||
	    record->wake.wake_ns > sched->out_ns)
		return false;
	record_totals(record, &context->now.scan_time, STATE_SLEEP, &totals);
	return totals_stand(&reporting->accounts->context->totals, &totals, sched->tid);
}

static void record_account(void *to, const struct thread_state *record)
{
	const struct reporting *reporting = to;
	struct live_accounts *accounts = reporting->accounts;
	struct thread_state completed;

	if (accounts->context->view.translated && record->sched.tid &&
	    !live_namespace_meet(accounts->context, record))
		return;
	/* the dead are in the kernel's table */
	if (live_is_own(accounts->context, record->identity.tgid) ||
	    record->sched.exit_state & EXIT_ZOMBIE_BIT)
		return;
	record = live_seed_whole(record, &completed);
	if (!record)
		return;
	thread_account(reporting, record);
}

/* Reads how long CPUs were busy until now. */
static void busy_read(struct live_accounts *accounts)
{
	if (accounts->first.cpus)
		cpu_busy_read(PROC, &accounts->busy);
	if (accounts->busy.cpus != accounts->first.cpus)
		accounts->first.cpus = 0; /* a CPU came or went: never again */
}

/* Makes the accounts of all threads, in a walk of its own beside those of scans, which go on where
 * they were. On a full host later scans may wait to be looked at: the time since the last scan that
 * was looked at is theirs. */
static void threads_account(struct reporting *reporting)
{
	struct live_accounts *accounts = reporting->accounts;
	const struct thread_visitor visitor = {account_passes, record_account, reporting};
	struct totals_table *totals = &accounts->context->totals;
	struct thread_table *table = &accounts->context->kernel.table;
	uint64_t unseen = table->torn_count + table->unfinished_count;
	uint32_t walked = table->walked;
	int64_t late_us;
	int err;

	totals_unmark(totals);
	busy_read(accounts);
	totals->end_ns = reporting->end_ns;
	accounts->context->now.scan_time.now_ns = clock_monotonic_ns();
	err = thread_table_scan_some(table, &visitor);
	table->walked = walked;
	live_seed_visit(&accounts->context->seed, record_account, reporting);
	late_us = (accounts->busy.at_ns - reporting->end_ns) / NS_PER_US;
	accounts->error_us += accounts->late_us + late_us;
	accounts->late_us = late_us;
	totals->at_ns = reporting->end_ns;
	totals->end_ns = 0;
	/* a thread that was not seen is gone, if all were seen */
	if (!err && table->torn_count + table->unfinished_count == unseen)
		totals_sweep(totals);
}

static void dead_account(const struct reporting *reporting)
{
	struct live_accounts *accounts = reporting->accounts;
	bool totals = accounts->context->wants.needs & NEED_TOTALS;
	struct sample account;

	for (size_t at = 0; dead_table_report(&accounts->dead, &at, totals, &account);) {
		if (account.thread.uid != ABSENT)
			account.thread.user =
				lookup_user(accounts->context->lookup, account.thread.uid,
					    accounts->context->now.scan_time.now_ns);
		sample_derive(&account, accounts->context->wants.needs);
		if (account_wanted(accounts, &account))
			reporting->take(reporting->to, &account);
	}
}

/* Makes an account of each CPU: of time that no thread asked for. */
static void cpus_account(const struct reporting *reporting)
{
	struct live_accounts *accounts = reporting->accounts;
	static struct source_cpu now[SOURCE_CPUS_MAX], since[SOURCE_CPUS_MAX];
	size_t count = live_taken_read(accounts->context, now), known;

	memcpy(since, now, count * sizeof(*now));
	known = source_cpus_since(since, count, accounts->taken, accounts->taken_count);
	for (size_t i = 0; i < known; i++) {
		struct sample account = *sample_absent();

		account.now.cpu = since[i].cpu;
		account.sums.hardirq_us = since[i].taken_us[CPU_USE_HARDIRQ];
		account.sums.softirq_us = since[i].taken_us[CPU_USE_SOFTIRQ];
		account.sums.steal_us = since[i].taken_us[CPU_USE_STEAL];
		if (account_wanted(accounts, &account))
			reporting->take(reporting->to, &account);
	}
	memcpy(accounts->taken, now, count * sizeof(*now));
	accounts->taken_count = count;
}

void live_accounts_report(struct live_accounts *accounts, account_callback *take, void *to)
{
	struct reporting reporting = {.accounts = accounts,
				      .end_ns = accounts->context->now.scan_time.now_ns,
				      .take = take,
				      .to = to};
	int64_t read_ns;

	if (!(accounts->context->wants.needs & NEED_PROCESSES))
		return;
	/* read first: a thread that is gone in the walk has ended before, or ends in the next
	 * account */
	process_totals_visit(accounts->context->kernel.compiled.maps[KERNEL_MAP_PROCESSES],
			     dead_read, accounts);
	read_ns = clock_monotonic_ns();
	if (accounts->context->wants.needs & NEED_TOTALS)
		threads_account(&reporting);
	else
		busy_read(accounts);
	dead_table_end(&accounts->dead, reporting.end_ns, read_ns);
	dead_account(&reporting);
	if (accounts->context->wants.needs & NEED_INTERRUPTS)
		cpus_account(&reporting);
}
