/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/scan/live_processes.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/names.h"
#include "proc/proc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROC "/proc"
#define ENDED_KEPT_NS (10 * NS_PER_SECOND)

static bool is_id(const char *part)
{
	return !part[strspn(part, "0123456789")];
}

/* Makes a process wanted from now on, until it ends. */
static void process_want(struct live_processes *processes, int64_t pid, uint64_t start_boot_ns)
{
	if (process_set_add(&processes->wanted, pid, start_boot_ns))
		filter_add_pid(processes->filter, pid);
}

/* Adds the processes that the list means to those that are wanted; *count: how many. */
static int pids_add(struct live_processes *processes, const char *list, size_t *count,
		    struct text *missing)
{
	int64_t *pids = NULL;
	int err;

	*count = 0;
	err = proc_pids_find(PROC, list, &pids, count, missing);
	for (size_t i = 0; i < *count; i++)
		process_want(processes, pids[i], 0);
	free(pids);
	return err;
}

#define NEAREST_MAX 3

struct process_names {
	const char **names; /* interned */
	size_t count, capacity;
};

static int name_note(void *to, int64_t pid, int64_t tid)
{
	struct process_names *there = to;
	struct proc_stat stat;

	if (pid != tid || pid == getpid() || proc_stat_read(PROC, pid, tid, &stat))
		return 0;
	there->names = memory_grow(there->names, &there->capacity, there->count + 1,
				   sizeof(*there->names));
	there->names[there->count++] = name_of_string(stat.comm);
	return 0;
}

static const char *name_at(void *from, size_t at)
{
	const struct process_names *there = from;

	return at < there->count ? there->names[at] : NULL;
}

/* Adds the names of processes that are most like a name. */
static void nearest_add(struct text *words, const char *name)
{
	struct process_names there = {0};
	const char *nearest;

	proc_threads_walk(PROC, name_note, &there);
	for (int i = 0; i < NEAREST_MAX && (nearest = text_nearest(name, name_at, &there)); i++) {
		size_t kept = 0;

		text_add_format(words, "%s%s", i ? ", " : "; nearest: ", nearest);
		for (size_t at = 0; at < there.count; at++)
			if (there.names[at] != nearest)
				there.names[kept++] = there.names[at];
		there.count = kept;
	}
	free(there.names);
}

/* Fails, as no part of the list means a process. */
static int nobody_fail(const char *list, struct error *e)
{
	struct text part = {0}, nearest = {0};
	const char *rest = list;
	int err;

	if (!list[strspn(list, "0123456789,")])
		return error_set(e, ESRCH, EXIT_FAILED,
				 "there is no process %s; ps -e lists all processes", list);
	while (text_next_name(&part, &rest))
		if (!is_id(text_string(&part)))
			nearest_add(&nearest, text_string(&part));
	if (!access(list, F_OK))
		text_add_format(&nearest, "; a recording is replayed with --replay %s", list);
	err = error_set(e, ENOENT, EXIT_FAILED,
			"no process has %s as its name (15 bytes at most), program or script%s; ps "
			"-eo pid,comm,args lists all processes",
			list, text_string(&nearest));
	text_done(&nearest);
	text_done(&part);
	return err;
}

/* Adds a remark for each part of the list that means no process, where other parts do. */
static void missing_remark(const char *missing, struct text *remarks)
{
	struct text part = {0};

	while (text_next_name(&part, &missing))
		text_add_format(remarks,
				is_id(text_string(&part))
					? "there is no process %s; tsnap samples the others\n"
					: "no process is called %s yet; tsnap looks for it every "
					  "second, and samples the others\n",
				text_string(&part));
	text_done(&part);
}

/* Returns the names of the list, without its ids; NULL: there are none. */
static char *names_of(const char *list)
{
	struct text part = {0}, names = {0};

	while (text_next_name(&part, &list))
		if (!is_id(text_string(&part)))
			text_add_format(&names, "%s%s", names.length ? "," : "",
					text_string(&part));
	text_done(&part);
	return names.length ? text_take(&names) : NULL;
}

/* Adds the process if it is a child of a wanted one. */
static int descendant_add(void *to, int64_t pid, int64_t tid)
{
	struct live_processes *processes = to;
	struct proc_stat stat;

	if (pid != tid || index_find(&processes->filter->pids, (uint64_t)pid) ||
	    proc_stat_read(PROC, pid, tid, &stat) ||
	    !index_find(&processes->filter->pids, (uint64_t)stat.ppid))
		return 0;
	process_want(processes, pid, 0);
	processes->added++;
	return 0;
}

static void descendants_add(struct live_processes *processes)
{
	do {
		processes->added = 0;
		proc_threads_walk(PROC, descendant_add, processes);
	} while (processes->added);
}

/* Finds the threads of -t: those that have such an id now. */
static void threads_find(struct live_processes *processes)
{
	uint64_t tid, value;

	process_set_init(&processes->threads, PROC);
	processes->threads.pidfds = false; /* pidfds of threads came with Linux 6.9 */
	for (size_t at = 0; index_next(&processes->filter->tids, &at, &tid, &value);)
		process_set_add(&processes->threads, (int64_t)tid, 0);
}

int live_processes_find(struct live_processes *processes, const struct live_config *config,
			struct filter *filter, struct text *remarks, struct error *e)
{
	const char *list = config->process;
	struct text missing = {0};
	size_t count;
	int err;

	processes->filter = filter;
	processes->listed = list;
	process_set_init(&processes->wanted, PROC);
	threads_find(processes);
	if (!list)
		return 0;
	index_clear(&processes->filter->pids); /* some ids may be of no process */
	err = pids_add(processes, list, &count, &missing);
	if (err)
		error_set(e, -err, EXIT_FAILED, "-p %s: %s", list, strerror(-err));
	else if (!processes->filter->pids.used)
		err = nobody_fail(list, e);
	else if (missing.length)
		missing_remark(text_string(&missing), remarks);
	text_done(&missing);
	if (err)
		return err;
	processes->names = names_of(list);
	if (config->descendants)
		descendants_add(processes);
	return 0;
}

static bool id_is_taken(int64_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), PROC "/%lld", (long long)pid);
	return !access(path, F_OK) || errno != ENOENT;
}

/* Keeps a process wanted for a while after its end, unless another one gets its id: what it did is
 * reported later, too, in histograms, accounts, scans that were copied before. */
static void ended_keep(struct live_processes *processes, int64_t pid)
{
	struct ended_process *slot = &processes->ended[processes->ended_at++ % LIVE_ENDED_MAX];

	if (slot->pid)
		filter_remove_pid(processes->filter, slot->pid);
	*slot = (struct ended_process){pid, processes->now_ns};
}

static void ended_check(struct live_processes *processes)
{
	for (int i = 0; i < LIVE_ENDED_MAX; i++) {
		struct ended_process *ended = &processes->ended[i];

		if (!ended->pid)
			continue;
		if (process_set_lives(&processes->wanted, ended->pid)) {
			ended->pid = 0; /* another wanted process has the id */
		} else if (processes->now_ns - ended->at_ns > ENDED_KEPT_NS ||
			   id_is_taken(ended->pid)) {
			filter_remove_pid(processes->filter, ended->pid);
			ended->pid = 0;
		}
	}
}

void live_processes_child(struct live_processes *processes, const struct thread_state *record)
{
	const struct thread_identity *identity = &record->identity;

	if (!process_set_has_parent(&processes->wanted, identity->parent_tgid,
				    identity->start_boot_ns))
		return;
	process_want(processes, identity->tgid, identity->start_boot_ns);
	if (index_find(&processes->filter->pids, identity->tgid) || id_is_taken(identity->tgid))
		return;
	filter_add_pid(processes->filter, identity->tgid);
	ended_keep(processes, identity->tgid);
}

static void process_gone(void *to, int64_t pid)
{
	ended_keep(to, pid);
}

static void thread_gone(void *to, int64_t tid)
{
	struct live_processes *processes = to;

	filter_remove_tid(processes->filter, tid);
}

void live_processes_check(struct live_processes *processes, int64_t now_ns, bool look)
{
	size_t count;

	processes->now_ns = now_ns;
	process_set_check(&processes->threads, look, thread_gone, processes);

	if (!processes->listed)
		return;
	process_set_check(&processes->wanted, look, process_gone, processes);
	ended_check(processes);
	if (processes->names && look)
		pids_add(processes, processes->names, &count, NULL);
}

void live_processes_done(struct live_processes *processes)
{
	free(processes->names);
	process_set_done(&processes->wanted);
	process_set_done(&processes->threads);
}
