/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/processes.h"
#include "base/cache.h"
#include "base/clock.h"
#include "base/names.h"
#include "proc/cgroup.h"
#include "proc/lookup_hint.h"
#include "proc/proc.h"
#include "sample/sample.h"

#include <limits.h>

struct comm {
	struct cache_entry entry; /* key: tid */
	int64_t read_ns;
	bool name_known, pid_known;
	const char *name;
	int64_t pid;
};

void comms_init(struct cache *comms)
{
	*comms = (struct cache){.entry_bytes = sizeof(struct comm), .entries_max = COMMS_MAX};
}

static const char *comm_read(const char *root, int64_t tid)
{
	char comm[PROC_COMM_SIZE + 1];
	ssize_t length = proc_file_read(root, 0, tid, "comm", comm, sizeof(comm));

	if (length > 0 && comm[length - 1] == '\n')
		length--;
	return length > 0 ? name_transient(comm, length) : NULL;
}

/* Finds or adds the thread's entry; forgets name and pid after LOOKUP_RAN_NS. */
static struct comm *thread_find(struct cache *comms, int64_t tid, int64_t now_ns)
{
	bool added;
	struct comm *comm = cache_get(comms, (uint64_t)tid, now_ns, &added);

	if (added || now_ns - comm->read_ns >= LOOKUP_RAN_NS) {
		comm->name_known = comm->pid_known = false;
		comm->read_ns = now_ns;
	}
	return comm;
}

const char *comm_find(struct cache *comms, const char *root, int64_t tid, int64_t now_ns)
{
	struct comm *comm = thread_find(comms, tid, now_ns);

	if (!comm->name_known)
		comm->name = comm_read(root, tid);
	comm->name_known = true;
	return comm->name;
}

int64_t comm_pid_find(struct cache *comms, const char *root, int64_t tid, int64_t now_ns)
{
	struct comm *comm = thread_find(comms, tid, now_ns);
	int64_t uid;

	if (!comm->pid_known && proc_ids_read(root, tid, &uid, &comm->pid))
		comm->pid = ABSENT;
	comm->pid_known = true;
	return comm->pid;
}

/* Tolerance for start_ns, which may be rounded down to a tick of 1/100 s, the unit of
 * /proc/TID/stat. */
#define START_ROUNDING_NS (20 * 1000000ll)

struct process {
	struct cache_entry entry;
	int64_t read_ns, read_boot_ns; /* times just before the first read of the facts */
	struct sample_process facts;
	const char *cgroup; /* of the leader */
};

void processes_init(struct cache *processes)
{
	*processes =
		(struct cache){.entry_bytes = sizeof(struct process), .entries_max = PROCESSES_MAX};
}

static const char *cmdline_read(const char *root, int64_t pid, int64_t tid)
{
	char cmdline[PROC_CMDLINE_BYTES];
	ssize_t length = proc_cmdline_read(root, pid, tid, cmdline);

	return length > 0 ? name_transient(cmdline, length) : NULL;
}

static const char *exe_read(const char *root, int64_t pid, int64_t tid)
{
	char path[PATH_MAX];
	ssize_t length = proc_link_read(root, pid, tid, "exe", path, sizeof(path));

	return length > 0 ? name_transient(path, length) : NULL;
}

/* True if the facts are of the thread's process, not of an earlier process with the same pid: a
 * thread never changes its process, so this is so if it lived when the facts were read. */
static bool process_is_same(const struct process *process, const struct sample *sample)
{
	return sample->thread.start_ns != ABSENT &&
	       sample->thread.start_ns < process->read_boot_ns - START_ROUNDING_NS;
}

/* Returns the entry of the sampled thread's process, without facts if they may be out of date. */
static struct process *process_find(struct cache *processes, const struct sample *sample,
				    bool renew, int64_t now_ns)
{
	bool added;
	struct process *process = cache_get(processes, sample->thread.pid, now_ns, &added);

	if (added || renew || !process_is_same(process, sample) ||
	    now_ns - process->read_ns >= LOOKUP_RAN_NS) {
		process->facts = sample_absent()->process;
		process->cgroup = NULL;
		process->read_ns = now_ns;
		process->read_boot_ns = clock_boot_ns();
	}
	return process;
}

/* Facts are read through the thread, not the leader: the kernel shows no exe of a leader that has
 * ended. Facts that this thread does not show (it may have ended) remain absent: another thread
 * may show them. */
const struct sample_process *process_facts(struct cache *processes, const char *root,
					   const struct sample *sample, uint64_t needs, bool renew,
					   int64_t now_ns)
{
	struct process *process = process_find(processes, sample, renew, now_ns);
	int64_t pid = sample->thread.pid, tid = sample->thread.tid;
	struct sample_process *facts = &process->facts;
	struct proc_stat stat;

	if (needs & NEED_PPID && facts->ppid == ABSENT && !proc_stat_read(root, pid, tid, &stat) &&
	    !stat.reaped)
		facts->ppid = stat.ppid;
	if (needs & NEED_PARENT_COMM && !facts->parent_comm && facts->ppid > 0)
		facts->parent_comm = comm_read(root, facts->ppid);
	if (needs & NEED_CMDLINE && !facts->cmdline)
		facts->cmdline = cmdline_read(root, pid, tid);
	if (needs & NEED_EXE && !facts->exe)
		facts->exe = exe_read(root, pid, tid);
	return facts;
}

const char *process_cgroup(struct cache *processes, const char *root, const struct sample *sample,
			   int64_t now_ns)
{
	struct process *process = process_find(processes, sample, false, now_ns);

	if (!process->cgroup)
		process->cgroup = cgroup_read(root, sample->thread.pid, sample->thread.pid, NULL);
	return process->cgroup;
}
