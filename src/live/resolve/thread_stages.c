/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Facts that are cached of a thread, and stages for its waker, process, user, cgroup, namespace and
 * container: from /proc and the user database. */
#include "live/resolve/lookup_stages.h"
#include "base/names.h"
#include "proc/cgroup.h"
#include "proc/processes.h"
#include "proc/containers.h"
#include "proc/proc.h"
#include "proc/proc_words.h"
#include "proc/users.h"

#include <stdlib.h>
#include <string.h>

/* Time after which a sleeper's own cgroup is read again while its leader is in the same. */
#define CGROUP_OWN_NS (10 * LOOKUP_STILL_NS)

#define NEIGHBOURS 64 /* adjacent thread ids that come due together */

void thread_facts_init(struct cache *threads)
{
	*threads = (struct cache){.entry_bytes = sizeof(struct thread), .entries_max = THREADS_MAX};
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
		*thread = (struct thread){.entry = entry, .start_ns = sample->thread.start_ns};
	} else if (!thread_is_stale(thread, sample, item->hint, item->now_ns)) {
		return thread;
	} else {
		item->renamed = thread->comm != sample->thread.comm;
	}
	if (thread_ran(thread, sample, item->hint)) {
		thread->uid_read = thread->cgroup_still = false;
	}
	thread->known = 0;
	thread->read_ns = item->now_ns;
	thread->sequence = item->hint->sequence;
	thread->was_running = sample->now.state == STATE_ON;
	thread->comm = sample->thread.comm;
	return thread;
}

/* Fills the waker's name and process. The idle task has no entry in /proc. */
void stage_waker(struct lookup_item *item)
{
	struct lookup *lookup = item->lookup;
	struct sample *sample = item->sample;
	int64_t tid = sample->waker.tid;

	if (tid == ABSENT)
		return;
	if (item->needs & NEED_WAKER_COMM && !sample->waker.comm)
		sample->waker.comm =
			tid ? comm_find(&lookup->comms, lookup->root, tid, item->now_ns)
			    : name_transient_string("swapper");
	if (item->needs & NEED_WAKER_PID)
		sample->waker.pid =
			tid ? comm_pid_find(&lookup->comms, lookup->root, tid, item->now_ns) : 0;
}

static SELDOM void process_read(struct lookup_item *item, struct thread *thread)
{
	const struct sample *sample = item->sample;
	/* exec ends all threads but one, and that one gets the process id as its tid */
	bool exec = item->renamed && sample->thread.tid == sample->thread.pid;

	thread->process = *process_facts(&item->lookup->processes, item->lookup->root, sample,
					 thread->known & NEEDS_OF_PROCESS, exec, item->now_ns);
}

void stage_process(struct lookup_item *item)
{
	struct sample *sample = item->sample;
	struct thread *thread = item->thread;
	/* kernel threads that are processes of their own have no program */
	bool program = sample->thread.kthread != 1 || sample->thread.tid != sample->thread.pid;
	uint64_t wanted = item->needs & (program ? NEEDS_OF_PROCESS : NEED_PPID | NEED_PARENT_COMM);

	if (thread_missing(thread, wanted))
		process_read(item, thread);
	if (wanted)
		sample_process_fill(&sample->process, &thread->process);
}

/* Reads what the kernel has of a thread whose user or cgroup is about to be read. */
void stage_task(struct lookup_item *item)
{
	if (item->needs & (NEED_USER | NEED_CGROUP) & ~item->thread->known)
		item->task_known = item->lookup->read_task &&
				   item->lookup->read_task(item->sample->thread.tid,
							   &item->task_uid, &item->groups);
}

static SELDOM void user_read(struct lookup_item *item, struct thread *thread)
{
	const struct lookup *lookup = item->lookup;
	const struct sample *sample = item->sample;

	if (item->task_known) {
		thread->uid = item->task_uid;
	} else {
		if (!thread->uid_read)
			thread->uid_read = !proc_owner_read(lookup->root, sample->thread.pid,
							    sample->thread.tid, &thread->uid);
		if (!thread->uid_read)
			thread->uid = sample->thread.uid;
	}
	thread->user = thread->uid == ABSENT
			       ? NULL
			       : user_name(&item->lookup->users, thread->uid, item->now_ns);
}

void stage_user(struct lookup_item *item)
{
	struct sample *sample = item->sample;
	struct thread *thread = item->thread;

	if (thread_missing(thread, NEED_USER))
		user_read(item, thread);
	text_take(&sample->thread.user, thread->user);
	sample->thread.uid = thread->uid;
}

/* True if the thread is in the cgroup that was read before. Processes are nearly always moved
 * whole: then their leaders are moved, too. */
static bool cgroup_serves(const struct lookup_item *item, const struct thread *thread)
{
	struct lookup *lookup = item->lookup;
	const struct sample *sample = item->sample;
	int64_t serves_ns = thread->cgroup_still ? CGROUP_OWN_NS : LOOKUP_STILL_NS;

	if (!thread->cgroup_ns || item->now_ns - thread->cgroup_ns >=
					  lookup_spread_ns((uint64_t)sample->thread.tid, serves_ns))
		return false;
	if (item->task_known)
		return item->groups == thread->cgroup_groups;
	return thread->cgroup_still && sample->thread.tid != sample->thread.pid &&
	       process_cgroup(&lookup->processes, lookup->root, sample, item->now_ns) ==
		       thread->cgroup;
}

static SELDOM void cgroup_take(struct lookup_item *item, struct thread *thread)
{
	const struct sample *sample = item->sample;

	if (cgroup_serves(item, thread))
		return;
	thread->cgroup = cgroup_read(item->lookup->root, sample->thread.pid, sample->thread.tid,
				     &thread->cgroup_others);
	thread->cgroup_ns = item->now_ns;
	thread->cgroup_groups = item->groups;
	thread->cgroup_still = true;
}

void stage_cgroup(struct lookup_item *item)
{
	struct thread *thread = item->thread;

	if (thread_missing(thread, NEED_CGROUP))
		cgroup_take(item, thread);
	text_take(&item->sample->cgroup.path, thread->cgroup);
	text_take(&item->sample->cgroup.others, thread->cgroup_others);
}

/* Reads the pid namespace from its link, "pid:[4026531836]", and the thread's ids there. */
static SELDOM void pid_namespace_read(const char *root, int64_t pid, int64_t tid,
				      struct sample_namespace *facts)
{
	static const char kind[] = "pid:[";
	char link[64] = "";

	facts->pid_ns = facts->ns_pid = facts->ns_tid = ABSENT;
	if (proc_link_read(root, pid, tid, "ns/pid", link, sizeof(link)) > 0 &&
	    !strncmp(link, kind, sizeof(kind) - 1))
		facts->pid_ns = strtoll(link + sizeof(kind) - 1, NULL, 10);
	proc_namespace_ids_read(root, pid, tid, &facts->ns_pid, &facts->ns_tid);
}

/* Fills the thread's pid namespace, and its ids there. */
void stage_namespace(struct lookup_item *item)
{
	struct sample *sample = item->sample;
	struct thread *thread = item->thread;

	if (thread_missing(thread, NEED_PID_NS))
		pid_namespace_read(item->lookup->root, sample->thread.pid, sample->thread.tid,
				   &thread->namespace);
	sample->namespace = thread->namespace;
}

/* Fills words of /proc/TID/stat, status and io. */
void stage_values(struct lookup_item *item)
{
	uint64_t wanted = item->needs & NEEDS_PROC_VALUES;

	if (item->sample->proc_values)
		proc_words_fill(&item->lookup->proc_words, item->lookup->root, item->sample, wanted,
				thread_missing(item->thread, wanted), item->now_ns);
}

/* Fills the names of container and pod, which are found by the cgroup. */
void stage_container(struct lookup_item *item)
{
	struct lookup *lookup = item->lookup;
	struct sample *sample = item->sample;

	if (!sample->cgroup.path)
		return;
	if (!sample->cgroup.container_name)
		sample->cgroup.container_name =
			container_name(&lookup->containers, lookup->root, sample->cgroup.path,
				       sample->thread.pid, item->now_ns);
	if (!sample->cgroup.pod_name)
		sample->cgroup.pod_name = pod_name(&lookup->containers, lookup->root,
						   sample->cgroup.path, item->now_ns);
}
