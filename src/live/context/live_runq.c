/* SPDX-License-Identifier: GPL-2.0-or-later */
/* No file of the kernel shows that a thread is held back for a quota: cpu.stat counts it
 * afterwards. Here it is concluded: the CPU that the thread was on last is idle, and the thread has
 * waited for long; or none of its group is on any CPU, and the group's count has grown in one of
 * the last periods. */
#include "live/context/live_runq.h"
#include "live/context/live_cpus.h"
#include "base/memory.h"
#include "base/names.h"
#include "base/text.h"
#include "kernel/task_query.h"
#include "proc/cgroup.h"
#include "proc/proc.h"
#include "base/host_file.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef SCHED_DEADLINE
#define SCHED_DEADLINE 6 /* linux/sched.h, 3.14 */
#endif
#define CGROUP_BYTES 8192
#define PATHS_MAX 16384
#define PATH_STILL_NS NS_PER_SECOND
#define PATH_LONG_NS (10 * NS_PER_SECOND) /* where the kernel shows the same groups */
#define IDLE_US 2000	 /* a thread that waited so long beside an idle CPU is held back */
#define RT_HELD_US 10000 /* a real-time thread is held back for 50 ms; a host can steal some ms */
#define LATELY_NS 300000000 /* some periods, of 100 ms unless somebody chose others */

/* The group of a thread in the hierarchy of CPU quotas. */
struct thread_path {
	struct cache_entry entry; /* key: tid */
	int64_t start_ns, read_ns;
	uint64_t groups; /* of task_query_ids(); 0: not known */
	char *path;	 /* NULL: not known */
};

static void path_drop(void *entry)
{
	free(((struct thread_path *)entry)->path);
}

/* Returns the path of a thread's group in the hierarchy of CPU quotas. NULL: the thread is gone. */
static const char *path_of(struct live_host *host, int64_t pid, int64_t tid, int64_t start_ns)
{
	int64_t now_ns = host->context->now.scan_time.now_ns;
	struct cache *paths = &host->paths;
	struct thread_path *thread;
	struct cache_entry entry;
	char text[CGROUP_BYTES];
	const char *path = NULL;
	size_t length;
	uint64_t groups = 0;
	int64_t uid, still_ns = PATH_STILL_NS;
	bool added;

	if (!paths->entry_bytes)
		*paths = (struct cache){.entry_bytes = sizeof(struct thread_path),
					.entries_max = PATHS_MAX,
					.drop = path_drop};
	thread = cache_get(paths, (uint64_t)tid, now_ns, &added);
	if (task_query_ids(tid, &uid, &groups))
		still_ns = groups == thread->groups ? PATH_LONG_NS : 0;
	if (!added && thread->start_ns == start_ns && now_ns - thread->read_ns < still_ns)
		return thread->path;
	entry = thread->entry;
	path_drop(thread);
	if (proc_file_read(PROC, pid, tid, "cgroup", text, sizeof(text)) > 0)
		path = cgroup_of_controller(text, "cpu", &length);
	*thread = (struct thread_path){
		.entry = entry,
		.start_ns = start_ns,
		.read_ns = now_ns,
		.groups = groups,
		.path = path ? memory_text(path, length) : NULL,
	};
	return thread->path;
}

/* True if a thread of the group was on a CPU. */
static bool group_runs(struct live_host *host, const struct cpu_quota_group *group)
{
	const struct thread_state *on;
	size_t at = 0;

	while ((on = live_cpus_next(host->context, &at))) {
		const struct thread_identity *who = &on->identity;
		const char *path = path_of(host, who->tgid, who->tid, record_start_ns(on));

		if (path && cpu_quota_holds(group, path, strlen(path)))
			return true;
	}
	return false;
}

static bool is_throttled(struct live_host *host, const struct cpu_quota_group *group,
			 const struct sample *sample, const struct thread_state *on)
{
	if (!on && sample->now.state_us >= IDLE_US)
		return true;
	return group->throttled_ns &&
	       host->context->now.scan_time.now_ns - group->throttled_ns <= LATELY_NS &&
	       !group_runs(host, group);
}

const char *live_runq_throttled(struct live_host *host, const struct sample *sample,
				const struct thread_state *on)
{
	struct cpu_quotas *quotas = &host->quotas;
	const char *path =
		path_of(host, sample->thread.pid, sample->thread.tid, sample->thread.start_ns);
	int64_t now_ns = host->context->now.scan_time.now_ns;
	int slot = path ? cpu_quota_find(quotas, path, strlen(path), now_ns) : -1;

	for (; slot >= 0; slot = cpu_quota_outer(quotas, slot, now_ns)) {
		const struct cpu_quota_group *group = cpu_quota_count(quotas, slot, now_ns);

		if (is_throttled(host, group, sample, on))
			return group->path;
	}
	return NULL;
}

/* Rank of a policy's scheduling class: threads of a higher one run first. */
static int class_rank(int64_t policy)
{
	switch (policy) {
	case SCHED_DEADLINE:
		return 2;
	case SCHED_FIFO:
	case SCHED_RR:
		return 1;
	default:
		return 0;
	}
}

const char *live_runq_budget(const struct sample *sample, int64_t policy,
			     const struct thread_state *on, bool *due)
{
	static const char *const words[] = {NULL, "real-time budget", "deadline budget"};
	int rank = class_rank(policy);
	struct proc_stat stat;
	bool known = true;

	*due = rank;
	if (rank && on) {
		/* the other thread may have ended by now */
		known = !proc_stat_read(PROC, on->identity.tgid, on->identity.tid, &stat);
		*due = !known || class_rank(stat.policy) < rank;
	}
	/* a thread that was just woken is about to displace the other one */
	return *due && known && sample->now.state_us >= (rank == 1 ? RT_HELD_US : IDLE_US)
		       ? words[rank]
		       : NULL;
}

bool live_runq_where(const struct sample *sample, int64_t *cpu, int64_t *policy)
{
	struct proc_stat stat;

	if (task_query_queue(sample->thread.tid, cpu, policy))
		return true;
	if (proc_stat_read(PROC, sample->thread.pid, sample->thread.tid, &stat))
		return false;
	*cpu = stat.cpu;
	*policy = stat.policy;
	return true;
}

/* True if CPUs were idle at the scan time, but none that the thread may run on. */
static bool is_pinned(struct live_context *context, int64_t tid)
{
	const struct live_scan_time *time = &context->now.scan_time;
	bool idle = false;
	cpu_set_t allowed; /* with more CPUs than it has room for, nothing is known */

	/* the system call must take the ids that /proc shows */
	if (shown_pid() != getpid() || sched_getaffinity((pid_t)tid, sizeof(allowed), &allowed))
		return false;
	for (int cpu = 0; cpu < context->kernel.host.cpus_possible; cpu++) {
		if (live_cpus_thread(context, cpu) ||
		    (time->offline && (uint32_t)cpu < time->offline_count && time->offline[cpu]))
			continue;
		if (CPU_ISSET(cpu, &allowed))
			return false;
		idle = true;
	}
	return idle;
}

static void runq_why_fill(struct live_host *host, struct sample *sample)
{
	const struct thread_state *on;
	struct text why = {0};
	const char *group, *budget;
	int64_t cpu, policy;
	bool due;

	if (!live_runq_where(sample, &cpu, &policy))
		return;
	on = live_cpus_thread(host->context, cpu);
	if (on && on->identity.tid == sample->thread.tid)
		return;
	budget = live_runq_budget(sample, policy, on, &due);
	group = due ? NULL : live_runq_throttled(host, sample, on);
	if (budget)
		text_add_format(&why, "own %s", budget);
	else if (group)
		text_add_format(&why, "throttled by %s", group);
	else if (on && !due)
		text_add_format(&why, "behind %.*s%s", THREAD_COMM_SIZE, on->identity.comm,
				is_pinned(host->context, sample->thread.tid) ? ", pinned" : "");
	if (why.length)
		sample->now.runq_why = name_transient(why.bytes, why.length);
	text_done(&why);
}

void live_runq_fill(struct live_host *host, struct sample *samples, size_t count)
{
	/* /proc does not show which thread has the CPU */
	if (!(host->context->wants.needs & NEED_RUNQ_WHY) || host->context->proc)
		return;
	for (size_t i = 0; i < count; i++)
		if (samples[i].thread.tid != ABSENT && samples[i].now.state == STATE_RQ)
			runq_why_fill(host, &samples[i]);
}
