/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live_peers.h"
#include "live_edges.h"
#include "base/memory.h"
#include "base/names.h"
#include "proc/proc.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PEERS_MAX 256	    /* threads of one process that are looked at */
#define PEERS_SCAN_MAX 4096 /* and of all in one scan */

/* Why a thread sleeps is known when it was filled. */
static void peer_add(struct live_context *context, struct live_edges *edges, int64_t tid,
		     int64_t pid)
{
	struct edge_asker asker;
	const struct state_row *state;

	if (!live_edge_asker(context, tid, pid, &asker))
		return;
	state = state_row(asker.sample.state);
	edges->threads = memory_grow(edges->threads, &edges->thread_capacity,
				     edges->thread_count + 1, sizeof(*edges->threads));
	edges->threads[edges->thread_count++] = (struct peer_thread){
		.tid = tid,
		.active = (state && state->active) || why_works(asker.sample.why),
		.link = asker.sample.filename,
		.loops = asker.sample.syscall && (strstr(asker.sample.syscall, "poll") ||
						  strstr(asker.sample.syscall, "select")),
	};
}

/* The kernel counts a process's threads as links of their directory. */
static bool process_is_single(int64_t pid)
{
	char path[64];
	struct stat task;

	snprintf(path, sizeof(path), PROC "/%lld/task", (long long)pid);
	return !stat(path, &task) && task.st_nlink == 3;
}

static void peers_add(struct live_context *context, struct live_edges *edges, int64_t pid,
		      struct peer_process *process)
{
	const struct dirent *entry;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), PROC "/%lld/task", (long long)pid);
	dir = opendir(path);
	while (dir && (entry = readdir(dir))) {
		if (!isdigit((unsigned char)*entry->d_name))
			continue;
		process->whole = edges->thread_count - process->first < PEERS_MAX &&
				 edges->thread_count < PEERS_SCAN_MAX;
		if (!process->whole)
			break;
		peer_add(context, edges, atoll(entry->d_name), pid);
	}
	if (dir)
		closedir(dir);
	process->count = edges->thread_count - process->first;
}

/* Found out once in a scan. */
static const struct peer_process *peers_of(struct live_context *context, struct live_edges *edges,
					   int64_t pid)
{
	bool added;
	uint64_t *place = index_put(&edges->process_places, (uint64_t)pid, &added);
	struct peer_process process = {.first = edges->thread_count, .whole = true};

	if (!added)
		return &edges->processes[*place - 1];
	process.single = process_is_single(pid);
	if (!process.single)
		peers_add(context, edges, pid, &process);
	edges->processes = memory_grow(edges->processes, &edges->process_capacity,
				       edges->process_count + 1, sizeof(*edges->processes));
	edges->processes[edges->process_count++] = process;
	*place = edges->process_count;
	return &edges->processes[edges->process_count - 1];
}

/* The thread that is in a call on what the link names; else the one that woke the waiting one last,
 * or the only one, that is active; else the former though it sleeps; else the only one that waits
 * for several descriptors, an event loop. ABSENT: not known. */
static int64_t peer_choose(const struct live_edges *edges, const struct peer_process *process,
			   const char *link, int64_t waker_tid)
{
	int64_t in_call = ABSENT, active = ABSENT, waker = ABSENT, loop = ABSENT;
	size_t in_calls = 0, actives = 0, loops = 0;

	for (size_t i = process->first; i < process->first + process->count; i++) {
		const struct peer_thread *thread = &edges->threads[i];

		if (link && thread->link && !strcmp(thread->link, link)) {
			in_call = thread->tid;
			in_calls++;
		}
		if (thread->loops) {
			loop = thread->tid;
			loops++;
		}
		if (thread->tid == waker_tid) {
			waker = waker_tid;
			if (thread->active)
				actives = SIZE_MAX / 2; /* whoever else there is */
		}
		if (thread->active) {
			active = thread->tid;
			actives++;
		}
	}
	if (in_calls == 1)
		return in_call;
	if (!process->whole)
		return waker;
	if (actives == 1)
		return active;
	if (actives && actives <= SIZE_MAX / 2)
		return ABSENT;
	return waker == ABSENT && loops == 1 ? loop : waker;
}

void edge_to_process(struct live_context *context, struct live_edges *edges, int64_t pid,
		     const char *link, int64_t waker_tid, enum edge_sure sure, struct edge *edge)
{
	const struct peer_process *process = peers_of(context, edges, pid);
	struct proc_stat stat;

	edge->pid = pid;
	if (process->single) {
		edge->tid = pid;
		edge->sure = sure;
		return;
	}
	edge->tid = peer_choose(edges, process, link, waker_tid);
	edge->sure = edge->tid == ABSENT ? SURE_PROCESS : SURE_LIKELY;
	if (edge->tid == ABSENT && !proc_stat_read(PROC, 0, pid, &stat))
		edge->thing = name_lent_string(stat.comm);
}
