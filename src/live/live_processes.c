/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which processes are wanted: -p by ids and names, -r with their descendants. */
#include "live/live_state.h"
#include "base/text.h"
#include "proc/proc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENDED_KEPT_NS (10 * NS_PER_SECOND)

static bool is_id(const char *part)
{
	return !part[strspn(part, "0123456789")];
}

/* From now on the process is wanted, until it ends. */
static void process_want(struct live *live, int64_t pid, uint64_t start_boot_ns)
{
	if (process_set_add(&live->processes, pid, start_boot_ns))
		filter_add_pid(live->filter, pid);
}

/* Adds the processes that the list means to those that are wanted; *count: how many. */
static int pids_add(struct live *live, const char *list, size_t *count, struct text *missing)
{
	int64_t *pids = NULL;
	int err;

	*count = 0;
	err = proc_pids_find(PROC, list, &pids, count, missing);
	for (size_t i = 0; i < *count; i++)
		process_want(live, pids[i], 0);
	free(pids);
	return err;
}

/* No part of the list means a process. */
static int nobody_fail(const char *list, struct error *e)
{
	if (strchr(list, ','))
		return error_set(e, ESRCH, EXIT_FAILED,
				 "-p %s: no process has such an id or name; see ps -e for those "
				 "there are",
				 list);
	if (is_id(list))
		return error_set(e, ESRCH, EXIT_FAILED,
				 "-p %s: there is no process %s; see ps -e for those there are",
				 list, list);
	return error_set(e, ENOENT, EXIT_FAILED,
			 "-p %s: no process has such a name; give ids or another pattern", list);
}

/* Some parts of the list mean a process, and these don't. */
static void missing_remark(const char *missing, struct text *remarks)
{
	struct text part = {0};

	while (text_next_name(&part, &missing))
		text_add_format(
			remarks,
			is_id(text_string(&part))
				? "-p %s: there is no such process; see ps -e for those "
				  "there are. The others of the list are sampled\n"
				: "-p %s: no process has such a name; it is looked for again "
				  "every second. The others of the list are sampled\n",
			text_string(&part));
	text_done(&part);
}

/* The names of the list, without its ids; NULL: there are none. */
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

/* Adds children of wanted processes until there are no more. */
static int descendant_add(void *to, int64_t pid, int64_t tid)
{
	struct live *live = to;
	struct proc_stat stat;

	if (pid != tid || index_find(&live->filter->pids, (uint64_t)pid) ||
	    proc_stat_read(PROC, pid, tid, &stat) ||
	    !index_find(&live->filter->pids, (uint64_t)stat.ppid))
		return 0;
	process_want(live, pid, 0);
	live->walked++;
	return 0;
}

static void descendants_add(struct live *live)
{
	do {
		live->walked = 0;
		proc_threads_walk(PROC, descendant_add, live);
	} while (live->walked);
}

/* Threads of -t: who has such an id now. */
static void threads_find(struct live *live)
{
	uint64_t tid, value;

	process_set_init(&live->chosen_threads, PROC);
	live->chosen_threads.pidfds = false; /* those of threads came with Linux 6.9 */
	for (size_t at = 0; index_next(&live->filter->tids, &at, &tid, &value);)
		process_set_add(&live->chosen_threads, (int64_t)tid, 0);
}

int live_processes_find(struct live *live, struct error *e)
{
	const char *list = live->config.process;
	struct text missing = {0};
	size_t count;
	int err;

	process_set_init(&live->processes, PROC);
	threads_find(live);
	if (!list)
		return 0;
	index_clear(&live->filter->pids); /* some may be of nobody */
	err = pids_add(live, list, &count, &missing);
	if (err)
		error_set(e, -err, EXIT_FAILED, "-p %s: %s", list, strerror(-err));
	else if (!live->filter->pids.used)
		err = nobody_fail(list, e);
	else if (missing.length)
		missing_remark(text_string(&missing), &live->remarks);
	text_done(&missing);
	if (err)
		return err;
	live->process_names = names_of(list);
	if (live->config.descendants)
		descendants_add(live);
	return 0;
}

static bool id_is_taken(int64_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), PROC "/%lld", (long long)pid);
	return !access(path, F_OK) || errno != ENOENT;
}

/* What a process did is told after its end, too: in histograms, accounts, scans that were copied
 * before. So it stays a wanted one for a while, unless another one gets its id. */
static void ended_keep(struct live *live, int64_t pid)
{
	struct ended_process *place = &live->ended[live->ended_at++ % ENDED_MAX];

	if (place->pid)
		filter_remove_pid(live->filter, place->pid);
	*place = (struct ended_process){pid, live->moment.now_ns};
}

static void ended_check(struct live *live)
{
	for (int i = 0; i < ENDED_MAX; i++) {
		struct ended_process *ended = &live->ended[i];

		if (!ended->pid)
			continue;
		if (process_set_lives(&live->processes, ended->pid)) {
			ended->pid = 0; /* its id is that of another wanted one */
		} else if (live->moment.now_ns - ended->at_ns > ENDED_KEPT_NS ||
			   id_is_taken(ended->pid)) {
			filter_remove_pid(live->filter, ended->pid);
			ended->pid = 0;
		}
	}
}

void live_processes_child(struct live *live, const struct thread_state *record)
{
	const struct thread_identity *identity = &record->identity;

	if (!process_set_has_parent(&live->processes, identity->parent_tgid,
				    identity->start_boot_ns))
		return;
	process_want(live, identity->tgid, identity->start_boot_ns);
	if (index_find(&live->filter->pids, identity->tgid) || id_is_taken(identity->tgid))
		return;
	filter_add_pid(live->filter, identity->tgid);
	ended_keep(live, identity->tgid);
}

static void process_gone(void *to, int64_t pid)
{
	ended_keep(to, pid);
}

static void thread_gone(void *to, int64_t tid)
{
	struct live *live = to;

	filter_remove_tid(live->filter, tid);
}

void live_processes_check(struct live *live)
{
	size_t count;

	process_set_check(&live->chosen_threads, live->keep_house, thread_gone, live);

	if (!live->config.process)
		return;
	process_set_check(&live->processes, live->keep_house, process_gone, live);
	ended_check(live);
	if (live->process_names && live->keep_house)
		pids_add(live, live->process_names, &count, NULL);
}
