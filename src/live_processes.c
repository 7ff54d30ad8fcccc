/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which processes are wanted: -p by ids or a pattern, -r with their descendants. */
#include "live_state.h"
#include "base/memory.h"
#include "lookup/proc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int pids_resolve(struct live *live, const char *text, struct error *e)
{
	char bad[128] = "";
	int64_t *pids = NULL;
	size_t count = 0;
	int err = proc_pids_find(PROC, text, &pids, &count, bad, sizeof(bad));

	if (err == -ENOENT)
		return error_set(e, -err, EXIT_FAILED,
				 "-p %s: no process has such a name; give ids or another pattern",
				 text);
	if (err == -ESRCH)
		return error_set(e, -err, EXIT_FAILED,
				 "-p %s: there is no process %s; see ps -e for those there are",
				 text, bad);
	if (err)
		return error_set(e, -err, EXIT_FAILED, "-p %s: %s", text, strerror(-err));
	for (size_t i = 0; i < count; i++)
		filter_add_pid(live->filter, pids[i]);
	free(pids);
	return 0;
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
	filter_add_pid(live->filter, pid);
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

int live_processes_find(struct live *live, struct error *e)
{
	const char *text = live->config->process;
	int err;

	if (!text)
		return 0;
	err = pids_resolve(live, text, e);
	if (err)
		return err;
	if (strspn(text, "0123456789,") != strlen(text))
		live->pattern = memory_text(text, strlen(text));
	if (live->config->descendants)
		descendants_add(live);
	return 0;
}

void live_processes_again(struct live *live)
{
	struct error ignored = {0};

	if (live->pattern)
		pids_resolve(live, live->pattern, &ignored);
	error_done(&ignored);
}
