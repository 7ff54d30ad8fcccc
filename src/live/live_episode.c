/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/live_episode.h"
#include "live/context/live_context.h"
#include "proc/syscalls.h"
#include "sample/source.h"

#include <sched.h>

/* Facts that lookups read of one episode in a system call. */
#define NEEDS_OF_STAY (NEED_FILE | NEED_CONNECTION | NEED_FILETYPE | NEED_WAITS | NEED_WCHAN)

/* Fields of a sample that NEEDS_OF_STAY fill. */
struct episode_facts {
	const char *filename, *filetype, *connection, *remote, *waits_on, *wchan;
	int64_t waits_on_pid, inflight;
};

static struct episode_facts facts_of(const struct sample *sample)
{
	return (struct episode_facts){sample->file.name,       sample->file.type,
				      sample->file.connection, sample->file.remote,
				      sample->wait.on,	       sample->wait.wchan,
				      sample->wait.pid,	       sample->wait.inflight};
}

static bool facts_differ(const struct episode_facts *facts, const struct sample *sample)
{
	return facts->filename != sample->file.name || facts->filetype != sample->file.type ||
	       facts->connection != sample->file.connection ||
	       facts->remote != sample->file.remote || facts->waits_on != sample->wait.on ||
	       facts->wchan != sample->wait.wchan || facts->waits_on_pid != sample->wait.pid ||
	       facts->inflight != sample->wait.inflight;
}

static void facts_put(const struct episode_facts *facts, struct sample *sample)
{
	sample->file.name = facts->filename;
	sample->file.type = facts->filetype;
	sample->file.connection = facts->connection;
	sample->file.remote = facts->remote;
	sample->wait.on = facts->waits_on;
	sample->wait.wchan = facts->wchan;
	sample->wait.pid = facts->waits_on_pid;
	sample->wait.inflight = facts->inflight;
}

/* Returns how many switches of a running thread tsnap's own threads have made: the thread that
 * scans took its CPU, and it has it again; and this thread runs there now. */
static uint64_t own_switches(const struct thread_state *record)
{
	return !record->sched.on_cpu + (sched_getcpu() == (int)record->sched.cpu);
}

bool live_episode_lasts(struct live_context *context, const struct thread_state *record, bool runs)
{
	const struct thread_table *table = &context->kernel.table;
	const struct thread_state *seed;
	struct thread_state copy;
	uint64_t begun;
	uint32_t tid, state;

	if (!record->sched.tid) { /* seed: the kernel has a record from the first switch on */
		seed = live_seed_waiting(&context->seed, record->identity.tid);
		return seed && seed->identity.tid;
	}
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
		(runs && !state && begun - record->sched.sequence_done <= own_switches(record)));
}

void live_episode_fill(struct live_context *context, const struct thread_state *record,
		       struct sample *sample, const struct lookup_hint *hint, uint64_t needs)
{
	bool runs = sample->now.state == STATE_ON;
	struct episode_facts before;

	/* what is read of a thread that has run already is not kept */
	if (needs & NEEDS_OF_STAY && !live_episode_lasts(context, record, runs)) {
		needs &= ~NEEDS_OF_STAY;
		context->later_lookups += sample->call.nr != ABSENT;
	}
	if (!(needs & NEEDS_OF_STAY)) {
		lookup_fill(context->lookup, sample, hint, needs, context->now.scan_time.now_ns);
		return;
	}
	before = facts_of(sample);
	lookup_fill(context->lookup, sample, hint, needs, context->now.scan_time.now_ns);
	if (!facts_differ(&before, sample) || live_episode_lasts(context, record, runs))
		return;
	facts_put(&before, sample);
	/* of two descriptors it is the stack that shows which one the thread waited for */
	if (syscall_fd_to(sample->call.nr, hint->compat, sample->call.arg) >= 0)
		sample->file.fd = ABSENT;
	sample->wait.open = false;
	context->later_lookups++;
}

void live_episode_seed_call(struct live_context *context, const struct thread_state *record,
			    struct sample *sample, bool *compat)
{
	live_seed_call(&context->seed, sample, compat);
	if (sample->call.nr == ABSENT || live_episode_lasts(context, record, false))
		return;
	sample->call.nr = ABSENT;
	for (int i = 0; i < SAMPLE_ARG_COUNT; i++)
		sample->call.arg[i] = ABSENT;
	context->later_lookups++;
}

void live_episode_describe(const struct live_context *context, struct source_status *facts)
{
	struct source_missed *missed = source_status_miss_any(
		facts, "lookups of files, connections and waits dropped: the thread ran meanwhile",
		context->later_lookups);

	if (missed)
		missed->natural = true;
}
