/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/resolve/lookup.h"
#include "base/cache.h"
#include "proc/proc_words.h"
#include "proc/cgroup.h"
#include "proc/comm.h"
#include "proc/containers.h"
#include "proc/fd_dirs.h"
#include "proc/paths.h"
#include "proc/proc.h"
#include "proc/processes.h"
#include "proc/devices.h"
#include "proc/syscalls.h"
#include "proc/users.h"
#include "waits/waits.h"
#include "base/memory.h"
#include "base/names.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 131072
#define SWEEP_IDLE_NS (5 * 1000000000ll)
#define SWEEP_USERS_IDLE_NS (600 * 1000000000ll)
#define NEIGHBOURS 64 /* threads by their ids */

/* A sleeper is asked for its own cgroup that seldom while its leader is in the same. */
#define CGROUP_OWN_NS (10 * LOOKUP_STILL_NS)

#define NEEDS_OF_PROCESS (NEED_PPID | NEED_CMDLINE | NEED_EXE)
#define NEEDS_OF_WAKER (NEED_WAKER_COMM | NEED_WAKER_PID)
#define NEEDS_RARE (NEED_PPID | NEED_CMDLINE | NEED_PID_NS)
#define NEEDS_OF_THREAD (NEED_USER | NEED_CGROUP | NEED_PID_NS)
#define NEEDS_OF_WAITS (NEED_CONNECTION | NEED_FILETYPE | NEED_WAITS | NEED_WCHAN)

struct lookup {
	char *root;
	struct cache threads, processes, users, comms, proc_words, containers;
	struct fd_dirs fd_dirs;
	struct waits *waits;
};

/* Facts that no column asks for by default. */
struct rare_facts {
	int64_t ppid, pid_ns, ns_pid, ns_tid;
	const char *cmdline;
};

/* With -a there is one for each thread of the host: 176 bytes with malloc(3)'s own. */
struct thread {
	struct cache_entry entry; /* key: tid */
	int64_t start_ns;
	/* when the facts were read, and what would make them stale */
	int64_t read_ns;
	uint64_t sequence;
	const char *comm;
	uint64_t known;
	/* facts */
	int64_t uid;
	const char *user, *exe, *cgroup, *cgroup_others;
	struct rare_facts *rare; /* NULL: nobody has asked */
	int64_t cgroup_ns;	 /* when cgroup was read; 0: it ran since */
	int64_t files_asked_ns;	 /* when files_shared was found out */
	/* the file of one stay in a system call */
	uint64_t file_sequence;
	const char *filename;
	int fd;
	bool file_known;
	bool files_shared; /* fd_are_shared() */
	bool uid_read;	   /* since it ran */
	bool was_running;
};

static void thread_drop(void *entry)
{
	free(((struct thread *)entry)->rare);
}

static struct rare_facts *thread_rare(struct thread *thread)
{
	if (!thread->rare)
		thread->rare = memory_get(sizeof(*thread->rare));
	return thread->rare;
}

struct lookup *lookup_new(const char *proc_root)
{
	struct lookup *lookup = memory_get(sizeof(*lookup));

	lookup->root = memory_text(proc_root, strlen(proc_root));
	lookup->threads = (struct cache){.entry_bytes = sizeof(struct thread),
					 .entries_max = THREADS_MAX,
					 .drop = thread_drop};
	comms_init(&lookup->comms);
	processes_init(&lookup->processes);
	users_init(&lookup->users);
	proc_words_init(&lookup->proc_words);
	containers_init(&lookup->containers);
	lookup->waits = waits_new(lookup->root, &lookup->comms);
	return lookup;
}

void lookup_free(struct lookup *lookup)
{
	if (!lookup)
		return;
	cache_done(&lookup->threads);
	cache_done(&lookup->processes);
	cache_done(&lookup->users);
	cache_done(&lookup->comms);
	cache_done(&lookup->proc_words);
	cache_done(&lookup->containers);
	fd_dirs_sweep(&lookup->fd_dirs, INT64_MAX, 0);
	waits_free(lookup->waits);
	syscalls_clear();
	devices_clear();
	free(lookup->root);
	free(lookup);
}

void lookup_sweep(struct lookup *lookup, int64_t now_ns)
{
	cache_sweep(&lookup->threads, now_ns, SWEEP_IDLE_NS);
	cache_sweep(&lookup->processes, now_ns, SWEEP_IDLE_NS);
	cache_sweep(&lookup->comms, now_ns, SWEEP_IDLE_NS);
	cache_sweep(&lookup->proc_words, now_ns, SWEEP_IDLE_NS);
	cache_sweep(&lookup->users, now_ns, SWEEP_USERS_IDLE_NS);
	cache_sweep(&lookup->containers, now_ns, SWEEP_USERS_IDLE_NS);
	fd_dirs_sweep(&lookup->fd_dirs, now_ns, SWEEP_IDLE_NS);
	waits_sweep(lookup->waits, now_ns, SWEEP_IDLE_NS);
}

const char *lookup_user(struct lookup *lookup, int64_t uid, int64_t now_ns)
{
	return user_name(&lookup->users, uid, now_ns);
}

/* "pid:[4026531836]" */
static void pid_space_read(const char *root, int64_t pid, int64_t tid, struct rare_facts *facts)
{
	static const char kind[] = "pid:[";
	char link[64] = "";

	facts->pid_ns = facts->ns_pid = facts->ns_tid = ABSENT;
	if (proc_link_read(root, pid, tid, "ns/pid", link, sizeof(link)) > 0 &&
	    !strncmp(link, kind, sizeof(kind) - 1))
		facts->pid_ns = strtoll(link + sizeof(kind) - 1, NULL, 10);
	proc_space_ids_read(root, pid, tid, &facts->ns_pid, &facts->ns_tid);
}

static bool thread_ran(const struct thread *thread, const struct sample *sample,
		       const struct lookup_hint *hint)
{
	return thread->was_running || sample->state == DOING_ON ||
	       hint->sequence != thread->sequence;
}

/* To twice that, so that thousands of sleepers seen in one scan don't all come due in one. */
static int64_t spread_ns(uint64_t number, int64_t ns)
{
	return ns + (int64_t)(hash_u64(number) % (uint64_t)ns);
}

/* True if the facts can have changed unseen. */
static bool thread_is_stale(const struct thread *thread, const struct sample *sample,
			    const struct lookup_hint *hint, int64_t now_ns)
{
	int64_t age_ns = now_ns - thread->read_ns;

	if (sample->comm != thread->comm)
		return true;
	if (thread_ran(thread, sample, hint))
		return age_ns >= LOOKUP_RAN_NS;
	/* neighbours are mostly of one process, whose facts are then read once for them all */
	return age_ns >= LOOKUP_STILL_NS &&
	       age_ns >= spread_ns((uint64_t)sample->tid / NEIGHBOURS, LOOKUP_STILL_NS);
}

/* The thread's entry, whose facts are those of this thread and not stale (but may not be known). */
static struct thread *thread_find(struct lookup *lookup, const struct sample *sample,
				  const struct lookup_hint *hint, int64_t now_ns, bool *renamed)
{
	bool added;
	struct thread *thread = cache_get(&lookup->threads, sample->tid, now_ns, &added);
	struct cache_entry entry = thread->entry;

	if (added || thread->start_ns != sample->start_ns) {
		thread_drop(thread);
		*thread = (struct thread){.entry = entry, .start_ns = sample->start_ns};
	} else if (!thread_is_stale(thread, sample, hint, now_ns)) {
		return thread;
	} else {
		*renamed = thread->comm != sample->comm;
	}
	if (thread_ran(thread, sample, hint)) {
		thread->uid_read = false;
		thread->cgroup_ns = 0;
	}
	thread->known = 0;
	thread->read_ns = now_ns;
	thread->sequence = hint->sequence;
	thread->was_running = sample->state == DOING_ON;
	thread->comm = sample->comm;
	return thread;
}

static void thread_read_process(struct lookup *lookup, struct thread *thread,
				const struct sample *sample, uint64_t missing, bool exec,
				int64_t now_ns)
{
	struct process_facts facts;

	process_fill(&lookup->processes, lookup->root, sample, missing, exec, now_ns, &facts);
	if (missing & NEED_EXE)
		thread->exe = facts.exe;
	if (missing & NEED_PPID)
		thread_rare(thread)->ppid = facts.ppid;
	if (missing & NEED_CMDLINE)
		thread_rare(thread)->cmdline = facts.cmdline;
}

/* Processes are moved whole, as good as always: then their leaders are moved, too. */
static void thread_read_cgroup(struct lookup *lookup, struct thread *thread,
			       const struct sample *sample, int64_t now_ns)
{
	struct process_facts facts;

	if (sample->tid != sample->pid && thread->cgroup_ns &&
	    now_ns - thread->cgroup_ns < spread_ns((uint64_t)sample->tid, CGROUP_OWN_NS)) {
		process_fill(&lookup->processes, lookup->root, sample, NEED_CGROUP, false, now_ns,
			     &facts);
		if (facts.cgroup == thread->cgroup)
			return;
	}
	thread->cgroup =
		cgroup_read(lookup->root, sample->pid, sample->tid, &thread->cgroup_others);
	thread->cgroup_ns = now_ns;
}

static void thread_read(struct lookup *lookup, struct thread *thread, const struct sample *sample,
			uint64_t missing, bool renamed, int64_t now_ns)
{
	/* exec ends all threads but one, and that one gets the process id as its tid */
	bool exec = renamed && sample->tid == sample->pid;

	if (missing & NEEDS_OF_PROCESS)
		thread_read_process(lookup, thread, sample, missing & NEEDS_OF_PROCESS, exec,
				    now_ns);
	if (missing & NEED_USER) {
		if (!thread->uid_read)
			thread->uid_read = !proc_owner_read(lookup->root, sample->pid, sample->tid,
							    &thread->uid);
		if (!thread->uid_read)
			thread->uid = sample->uid;
		thread->user = thread->uid == ABSENT
				       ? NULL
				       : user_name(&lookup->users, thread->uid, now_ns);
	}
	if (missing & NEED_CGROUP)
		thread_read_cgroup(lookup, thread, sample, now_ns);
	if (missing & NEED_PID_NS)
		pid_space_read(lookup->root, sample->pid, sample->tid, thread_rare(thread));
	thread->known |= missing;
}

static void text_take(const char **field, const char *text, bool needed)
{
	if (needed && !*field)
		*field = text;
}

static void rare_fill(const struct rare_facts *facts, struct sample *sample, uint64_t wanted)
{
	if (wanted & NEED_PPID && sample->ppid == ABSENT)
		sample->ppid = facts->ppid;
	text_take(&sample->cmdline, facts->cmdline, wanted & NEED_CMDLINE);
	if (wanted & NEED_PID_NS) {
		sample->pid_ns = facts->pid_ns;
		sample->ns_pid = facts->ns_pid;
		sample->ns_tid = facts->ns_tid;
	}
}

/* The path that the call was given, or else what is behind its descriptor. */
static const char *file_read(struct lookup *lookup, struct thread *thread,
			     const struct sample *sample, bool compat, int fd, int64_t now_ns)
{
	char target[2 * PATH_MAX];
	ssize_t length = call_path_read(lookup->root, sample, compat, target, sizeof(target));

	if (length <= 0 && fd >= 0) {
		if (!thread->files_asked_ns || now_ns - thread->files_asked_ns >= LOOKUP_RAN_NS) {
			thread->files_shared = fd_are_shared(sample->pid, sample->tid);
			thread->files_asked_ns = now_ns;
		}
		length = fd_link_read(&lookup->fd_dirs, lookup->root, sample->pid, sample->tid,
				      thread->files_shared, fd, now_ns, target, PATH_MAX);
	}
	return length > 0 ? name_lent(target, (size_t)length) : NULL;
}

static void file_fill(struct lookup *lookup, struct thread *thread, struct sample *sample,
		      const struct lookup_hint *hint, int64_t now_ns)
{
	int fd = syscall_fd(sample->syscall_nr, hint->compat, sample->arg);

	/* A thread that was not switched is in the same call, and holds its file even if another
	 * thread closes the descriptor. One on a CPU makes new calls without a switch. */
	if (!thread->file_known || thread->file_sequence != hint->sequence || thread->fd != fd ||
	    sample->state == DOING_ON) {
		thread->filename = file_read(lookup, thread, sample, hint->compat, fd, now_ns);
		thread->fd = fd;
		thread->file_sequence = hint->sequence;
		thread->file_known = sample->state != DOING_ON;
	}
	if (sample->fd == ABSENT && fd >= 0)
		sample->fd = fd;
	text_take(&sample->filename, thread->filename, true);
}

/* What is known of the waker is put into sample, where wanted (NEED_WAKER_...). */
static void waker_fill(struct lookup *lookup, struct sample *sample, uint64_t wanted,
		       int64_t now_ns)
{
	int64_t tid = sample->waker_tid; /* the idle task has no entry in /proc */

	if (wanted & NEED_WAKER_COMM && !sample->waker_comm)
		sample->waker_comm = tid ? comm_find(&lookup->comms, lookup->root, tid, now_ns)
					 : name_lent_string("swapper");
	if (wanted & NEED_WAKER_PID)
		sample->waker_pid =
			tid ? comm_pid_find(&lookup->comms, lookup->root, tid, now_ns) : 0;
}

static void thread_fill(struct lookup *lookup, struct sample *sample,
			const struct lookup_hint *hint, uint64_t needs, int64_t now_ns)
{
	uint64_t wanted = needs & (NEEDS_OF_THREAD | NEEDS_OF_PROCESS | NEEDS_PROC_VALUES);
	bool in_call = sample->syscall_nr != ABSENT && sample->kthread != 1, renamed = false;
	bool with_file = needs & NEED_FILE && in_call &&
			 (syscall_fd(sample->syscall_nr, hint->compat, sample->arg) >= 0 ||
			  syscall_path(sample->syscall_nr, hint->compat).arg >= 0);
	struct thread *thread;
	uint64_t missing;

	if (needs & NEED_SYSCALL && in_call)
		text_take(&sample->syscall, syscall_name(sample->syscall_nr, hint->compat), true);
	if (needs & NEEDS_OF_WAKER && sample->waker_tid != ABSENT)
		waker_fill(lookup, sample, needs & NEEDS_OF_WAKER, now_ns);
	if (sample->kthread == 1)
		wanted &= ~(NEED_CMDLINE | NEED_EXE);
	if (!sample->proc_values)
		wanted &= ~NEEDS_PROC_VALUES;
	if (!wanted && !with_file)
		return;

	thread = thread_find(lookup, sample, hint, now_ns, &renamed);
	missing = wanted & ~thread->known;
	if (missing)
		thread_read(lookup, thread, sample, missing, renamed, now_ns);
	if (wanted & NEEDS_PROC_VALUES)
		proc_words_fill(&lookup->proc_words, lookup->root, sample,
				wanted & NEEDS_PROC_VALUES, missing & NEEDS_PROC_VALUES, now_ns);
	if (wanted & NEEDS_RARE)
		rare_fill(thread_rare(thread), sample, wanted);
	text_take(&sample->exe, thread->exe, wanted & NEED_EXE);
	text_take(&sample->cgroup, thread->cgroup, wanted & NEED_CGROUP);
	text_take(&sample->cgroup_others, thread->cgroup_others, wanted & NEED_CGROUP);
	if (needs & NEED_CONTAINER_NAME && sample->cgroup && !sample->container_name)
		sample->container_name = container_name(&lookup->containers, lookup->root,
							sample->cgroup, sample->pid, now_ns);
	if (needs & NEED_CONTAINER_NAME && sample->cgroup && !sample->pod_name)
		sample->pod_name =
			pod_name(&lookup->containers, lookup->root, sample->cgroup, now_ns);
	if (wanted & NEED_USER) {
		text_take(&sample->user, thread->user, true);
		sample->uid = thread->uid;
	}
	if (with_file)
		file_fill(lookup, thread, sample, hint, now_ns);
}

/* No more than it takes: most calls decide by themselves. */
static void why_fill(struct lookup *lookup, struct sample *sample, const struct lookup_hint *hint,
		     int64_t now_ns)
{
	if (sample->why || sample->state != DOING_SLEEP || sample->kthread == 1 ||
	    sample->syscall_nr == ABSENT)
		return;
	thread_fill(lookup, sample, hint, NEED_SYSCALL, now_ns);
	if (waits_why_by_call(lookup->waits, sample) ||
	    waits_why_as_before(lookup->waits, sample, now_ns) ||
	    waits_why_of_peer(lookup->waits, sample, hint, now_ns))
		return;
	thread_fill(lookup, sample, hint, NEED_FILE, now_ns);
	waits_why(lookup->waits, sample, hint, now_ns);
}

void lookup_fill(struct lookup *lookup, struct sample *sample, const struct lookup_hint *hint,
		 uint64_t needs, int64_t now_ns)
{
	if (needs & NEED_WHY)
		why_fill(lookup, sample, hint, now_ns);
	thread_fill(lookup, sample, hint, needs, now_ns);
	if (needs & NEEDS_OF_WAITS)
		waits_fill(lookup->waits, sample, hint, needs, now_ns);
}

void lookup_set_daemon_ports(struct lookup *lookup, int64_t ports)
{
	waits_set_daemon_ports(lookup->waits, ports);
}

void lookup_set_runtime_locks(struct lookup *lookup, runtime_lock_finder *find, void *finder)
{
	waits_set_runtime_locks(lookup->waits, find, finder);
}

void lookup_give_time(struct lookup *lookup, int64_t now_ns, int64_t time_ns)
{
	waits_give_time(lookup->waits, now_ns, time_ns);
}

bool lookup_why_changes(const struct lookup *lookup, int64_t tid)
{
	return waits_why_changes(lookup->waits, tid);
}

bool lookup_wait_facts(struct lookup *lookup, const struct sample *sample,
		       const struct lookup_hint *hint, bool anew, int64_t now_ns,
		       struct wait_facts *facts)
{
	return waits_facts(lookup->waits, sample, hint, anew, now_ns, facts);
}

size_t lookup_unnamed_containers(const struct lookup *lookup, bool refused)
{
	return containers_unnamed(&lookup->containers, refused);
}

int lookup_sockets_error(const struct lookup *lookup)
{
	return waits_sockets_error(lookup->waits);
}
