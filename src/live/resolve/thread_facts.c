/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/resolve/lookup_stages.h"
#include "base/memory.h"

#include <stdlib.h>

#define NEIGHBOURS 64 /* adjacent thread ids that come due together */

static void thread_drop(void *entry)
{
	free(((struct thread *)entry)->rare);
}

struct rare_facts *thread_rare(struct thread *thread)
{
	if (!thread->rare) {
		thread->rare = memory_get(sizeof(*thread->rare));
		*thread->rare = (struct rare_facts){
			.ppid = ABSENT, .pid_ns = ABSENT, .ns_pid = ABSENT, .ns_tid = ABSENT};
	}
	return thread->rare;
}

void thread_facts_init(struct cache *threads)
{
	*threads = (struct cache){.entry_bytes = sizeof(struct thread),
				  .entries_max = THREADS_MAX,
				  .drop = thread_drop};
}

int64_t lookup_spread_ns(uint64_t number, int64_t ns)
{
	return ns + (int64_t)(hash_u64(number) % (uint64_t)ns);
}

static bool thread_ran(const struct thread *thread, const struct sample *sample,
		       const struct lookup_hint *hint)
{
	return thread->was_running || sample->now.state == STATE_ON ||
	       hint->sequence != thread->sequence;
}

/* True if the facts can have changed unseen. */
static bool thread_is_stale(const struct thread *thread, const struct sample *sample,
			    const struct lookup_hint *hint, int64_t now_ns)
{
	int64_t age_ns = now_ns - thread->read_ns;

	if (sample->thread.comm != thread->comm)
		return true;
	if (thread_ran(thread, sample, hint))
		return age_ns >= LOOKUP_RAN_NS;
	/* neighbours are mostly of one process, whose facts are then read once for them all */
	return age_ns >= LOOKUP_STILL_NS &&
	       age_ns >=
		       lookup_spread_ns((uint64_t)sample->thread.tid / NEIGHBOURS, LOOKUP_STILL_NS);
}

struct thread *thread_find(struct lookup_item *item)
{
	const struct sample *sample = item->sample;
	bool added;
	struct thread *thread =
		cache_get(&item->lookup->threads, sample->thread.tid, item->now_ns, &added);
	struct cache_entry entry = thread->entry;

	if (added || thread->start_ns != sample->thread.start_ns) {
		thread_drop(thread);
		*thread = (struct thread){.entry = entry, .start_ns = sample->thread.start_ns};
	} else if (!thread_is_stale(thread, sample, item->hint, item->now_ns)) {
		return thread;
	} else {
		item->renamed = thread->comm != sample->thread.comm;
	}
	if (thread_ran(thread, sample, item->hint)) {
		thread->uid_read = false;
		thread->cgroup_ns = 0;
	}
	thread->known = 0;
	thread->read_ns = item->now_ns;
	thread->sequence = item->hint->sequence;
	thread->was_running = sample->now.state == STATE_ON;
	thread->comm = sample->thread.comm;
	return thread;
}
