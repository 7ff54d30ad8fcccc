/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/chains/edge_waiter.h"
#include "base/names.h"
#include "live/context/live_context.h"
#include "proc/proc.h"

#include <sched.h>

static bool record_find(struct live_context *context, int64_t tid, struct thread_state *record)
{
	const struct thread_state *seed;
	uint32_t key;

	/* the array goes by the kernel's ids, which are others in a container */
	if (!context->view.translated &&
	    !thread_table_key(&context->kernel.table, (uint32_t)tid, &key))
		if (!thread_table_get_whole(&context->kernel.table, key, record))
			return record->sched.tid == (uint32_t)tid;
	seed = live_seed_waiting(&context->seed, (uint32_t)tid);
	if (seed)
		*record = *seed;
	return seed;
}

/* Returns the state of a thread as of now. tsnap needs a CPU to find that out: the thread that it
 * took it from would be running. */
static enum thread_state_kind state_now(const struct live_context *context,
					const struct live_scan_time *now,
					const struct thread_state *record)
{
	enum thread_state_kind state;
	bool ambiguous;

	state = record_state(record, now, &ambiguous);
	if (state == STATE_RQ && !record->sched.state &&
	    record_state(record, &context->now.scan_time, &ambiguous) == STATE_ON &&
	    record->sched.cpu == (uint32_t)sched_getcpu())
		return STATE_ON;
	return state;
}

/* True if the thread has not run since its record was copied. */
static bool slept_on(struct live_context *context, const struct thread_state *record)
{
	return record->sched.tid
		       ? thread_table_is_asleep(&context->kernel.table, record->key,
						record->sched.tid, record->sched.sequence_done)
		       : live_seed_waiting(&context->seed, record->identity.tid) != NULL;
}

static void looked_fill(struct live_context *context, struct edge_looked *looked)
{
	/* stacks and values of /proc are never needed of a blocker */
	uint64_t needs = sample_needs_close(NEED_BLOCKER |
					    (context->wants.needs & (NEED_CHAIN | NEED_QUERY)));
	const struct lookup_hint *hint = &looked->waiter.hint;
	struct sample *sample = &looked->sample;

	if (!sample->thread.kthread && sample->call.nr == ABSENT &&
	    looked->record.sched.known & SCHED_SEEDED)
		live_seed_call(&context->seed, sample, &looked->waiter.hint);
	if (context->wants.needs & NEED_BLOCK && context->now.capture)
		live_block_fill(&context->now.block, &context->now.capture->block, &looked->record,
				context->now.scan_time.now_ns, sample);
	/* the thread's wait decides its wait class, without a search that has little time */
	lookup_fill(context->lookup, sample, hint, needs & ~NEED_WAIT_CLASS,
		    context->now.scan_time.now_ns);
	lookup_fill(context->lookup, sample, hint, needs, context->now.scan_time.now_ns);
	if (needs & NEED_QUERY && !slept_on(context, &looked->record)) {
		sample->app.query = NULL;
		apps_fill_running(lookup_apps(context->lookup), sample, needs & NEED_QUERY,
				  context->now.scan_time.now_ns, &(struct app_look){0});
	}
}

/* Fills all that /proc alone shows of a thread: its name and state. */
static bool looked_of_proc(int64_t tid, int64_t pid, struct sample *sample)
{
	struct proc_stat stat;
	int64_t uid;

	if (pid == ABSENT && proc_ids_read(PROC, tid, &uid, &pid))
		return false;
	if (proc_stat_read(PROC, pid, tid, &stat))
		return false;
	sample->thread.tid = tid;
	sample->thread.pid = pid;
	sample->thread.comm = name_transient_string(stat.comm);
	if (stat.state != 'R') /* on a CPU, or waiting for one */
		sample->now.state = state_of_proc_letter(stat.state);
	return true;
}

static void record_waiter(struct live_context *context, struct thread_state *record)
{
	if (registers_lacking(&context->kernel.requester, record))
		registers_fill(&context->kernel.requester, &context->kernel.table, &record, 1);
}

bool live_edge_look(struct live_context *context, int64_t tid, int64_t pid,
		    struct edge_looked *looked)
{
	struct thread_state completed, *record = &looked->record;
	const struct thread_state *whole;
	/* a call that began after the scan is the one that others wait for */
	struct live_scan_time now = context->now.scan_time;
	enum thread_state_kind state;

	*looked = (struct edge_looked){.sample = *sample_absent()};
	looked->waiter.record = record;
	looked->waiter.sample = &looked->sample;
	if (!record_find(context, tid, record))
		return looked_of_proc(tid, pid, &looked->sample);
	whole = live_seed_whole(record, &completed);
	if (!whole)
		return false;
	if (!record_is_kthread(whole) && record->sched.tid)
		record_waiter(context, record);
	now.now_ns = clock_monotonic_ns();
	state = state_now(context, &now, record);
	record->identity = whole->identity;
	looked->waiter.hint.sequence = record->sched.sequence_done;
	record_sample(record, &context->now.scan_time, state, &looked->sample);
	record_call(record, &now, state, &looked->sample, &looked->waiter.hint);
	looked_fill(context, looked);
	return true;
}

void live_edge_waiter_of(struct live_context *context, const struct thread_state *record,
			 const struct sample *sample, struct edge_waiter *waiter)
{
	struct sample call;

	*waiter = (struct edge_waiter){.record = record, .sample = sample};
	waiter->hint.sequence = record->sched.sequence_done;
	if (sample->call.nr == ABSENT ||
	    record_call_compat(record, &context->now.scan_time,
			       (enum thread_state_kind)sample->now.state, &waiter->hint.compat))
		return;
	call = *sample;
	live_seed_call(&context->seed, &call, &waiter->hint);
}
