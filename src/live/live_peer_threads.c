/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live_peer_threads.h"
#include "live_edges.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/names.h"
#include "proc/proc.h"
#include "proc/user_memory.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PEERS_MAX 1024	    /* threads of one process that are looked at */
#define PEERS_SCAN_MAX 4096 /* threads of all processes that are looked at in one scan */
#define SEEN_MAX 32768
#define LISTS_MAX 4096
#define IDLE_NS (5 * NS_PER_SECOND) /* lists and threads not used for so long are forgotten */

/* Go's runtime begins its heap here (the first arena hint of its malloc.go); no other program is
 * known to use the address. */
#define GO_HEAP UINT64_C(0xc000000000)

/* A sleeping thread as it was seen. */
struct seen_thread {
	struct cache_entry entry; /* key: tid */
	int64_t pid;		  /* 0: nothing is known */
	int64_t until_ns;	  /* time at which its wait is read again */
	uint32_t record_key, record_tid;
	uint64_t sequence; /* number of its switch out */
	struct peer_thread thread;
};

/* The threads that a process had when they were listed. */
struct thread_list {
	struct cache_entry entry; /* key: pid */
	uint64_t links;		  /* link count of their directory; 0: not listed */
	int64_t *tids;
	size_t count, capacity;
	bool whole, goroutines;
};

static void list_drop(void *entry)
{
	free(((struct thread_list *)entry)->tids);
}

uint64_t peer_link_of(enum edge_kind kind, int64_t inode)
{
	return hash_u64((uint64_t)inode << 1 | (kind == EDGE_PIPE)) | 1;
}

/* Returns the number of the socket or pipe that a link leads to. 0: it leads to neither, or is
 * NULL. */
static uint64_t peer_link(const char *link)
{
	if (link && !strncmp(link, "socket:[", 8))
		return peer_link_of(EDGE_SOCKET, atoll(link + 8));
	return link && !strncmp(link, "pipe:[", 6) ? peer_link_of(EDGE_PIPE, atoll(link + 6)) : 0;
}

/* True for the classes of waits (sample/wait_rule_table.c) in which threads of pools wait for work.
 */
static bool is_rest(const char *why)
{
	static const char *const rests[] = {"futex", "server", "socket", "event", "ring", "signal"};

	for (size_t i = 0; why && i < sizeof(rests) / sizeof(*rests); i++)
		if (!strcmp(why, rests[i]))
			return true;
	return false;
}

static bool seen_still(struct live_context *context, const struct seen_thread *seen, int64_t pid)
{
	return seen->pid == pid && context->now.scan_time.now_ns < seen->until_ns &&
	       thread_table_is_asleep(&context->kernel.table, seen->record_key, seen->record_tid,
				      seen->sequence);
}

static void seen_keep(struct live_context *context, struct seen_thread *seen,
		      const struct edge_waiter *waiter, const struct peer_thread *thread)
{
	seen->pid = waiter->sample->thread.pid;
	seen->until_ns = lookup_wait_until(context->lookup, waiter->sample->thread.tid,
					   waiter->record->sched.sequence_done,
					   context->now.scan_time.now_ns);
	seen->record_key = waiter->record->key;
	seen->record_tid = waiter->record->sched.tid;
	seen->sequence = waiter->record->sched.sequence_done;
	seen->thread = *thread;
}

/* Why a thread sleeps is known when it was filled. */
bool peer_thread_read(struct live_peer_threads *threads, struct live_context *context, int64_t tid,
		      int64_t pid, struct peer_thread *thread)
{
	const struct state_row *state;
	struct wait_facts facts;
	struct edge_looked looked;
	const struct sample *sample = &looked.sample;
	bool epolls, polls, known, added;
	struct seen_thread *seen =
		cache_get(&threads->seen, (uint64_t)tid, context->now.scan_time.now_ns, &added);

	if (seen_still(context, seen, pid)) {
		*thread = seen->thread;
		return true;
	}
	seen->pid = 0;
	if (!live_edge_look(context, tid, pid, &looked) || sample->thread.pid != pid)
		return false;
	state = state_row(sample->now.state);
	known = lookup_wait_facts(context->lookup, sample, &looked.waiter.hint, false,
				  context->now.scan_time.now_ns, &facts);
	epolls = sample->call.name && !strncmp(sample->call.name, "epoll", 5);
	polls = sample->call.name &&
		(strstr(sample->call.name, "poll") || strstr(sample->call.name, "select"));
	*thread = (struct peer_thread){
		.tid = tid,
		.holder = facts.kind == WAIT_LOCK ? facts.tid : ABSENT,
		.active = (state && state->active) || wait_class_works(sample->wait.why),
		.rests = is_rest(sample->wait.why),
		.end = facts.served_inode == ABSENT ? peer_link(sample->file.name)
						    : peer_link_of(EDGE_SOCKET, facts.served_inode),
		/* a poll of one descriptor is as a read of it */
		.loops = polls && !facts.listens && (epolls || facts.count != 1),
		.set_fd = epolls ? sample->file.fd : ABSENT,
		.set_count = facts.count,
	};
	if (known && sample->now.state == STATE_SLEEP && looked.record.sched.tid)
		seen_keep(context, seen, &looked.waiter, thread);
	return true;
}

/* --- the threads of a process */

static bool has_goroutines(int64_t pid)
{
	char byte;

	return user_memory_read(PROC, pid, pid, GO_HEAP, &byte, 1) == 1;
}

/* Returns the links of the directory of a process's threads: the kernel counts one for each thread,
 * and two more. 0: the process is gone. */
static uint64_t links_read(const char *path)
{
	struct stat task;

	return stat(path, &task) ? 0 : task.st_nlink;
}

static void list_read(struct thread_list *list, const char *path, int64_t pid, uint64_t links)
{
	const struct dirent *entry;
	DIR *dir = opendir(path);

	list->links = links;
	list->count = 0;
	list->whole = true;
	while (dir && list->whole && (entry = readdir(dir))) {
		if (!isdigit((unsigned char)*entry->d_name))
			continue;
		list->whole = list->count < PEERS_MAX;
		if (!list->whole)
			break;
		list->tids = memory_grow(list->tids, &list->capacity, list->count + 1,
					 sizeof(*list->tids));
		list->tids[list->count++] = atoll(entry->d_name);
	}
	if (dir)
		closedir(dir);
	list->goroutines = has_goroutines(pid);
}

/* Reads the threads of a list. False: one of them is gone. */
static bool list_take(struct live_peer_threads *threads, struct live_context *context,
		      const struct thread_list *list, struct peer_process *process)
{
	struct peer_thread thread;
	bool all = true;

	threads->count = process->first;
	process->whole = list->whole;
	process->goroutines = list->goroutines;
	for (size_t i = 0; i < list->count; i++) {
		if (threads->count == PEERS_SCAN_MAX) {
			process->whole = false;
			break;
		}
		if (!peer_thread_read(threads, context, list->tids[i], process->pid, &thread)) {
			all = false;
			continue;
		}
		threads->threads = memory_grow(threads->threads, &threads->capacity,
					       threads->count + 1, sizeof(*threads->threads));
		threads->threads[threads->count++] = thread;
	}
	process->count = threads->count - process->first;
	return all;
}

static void threads_read(struct live_peer_threads *threads, struct live_context *context,
			 const char *path, uint64_t links, struct peer_process *process)
{
	bool added;
	struct thread_list *list = cache_get(&threads->lists, (uint64_t)process->pid,
					     context->now.scan_time.now_ns, &added);
	bool listed = list->links == links;

	if (!listed)
		list_read(list, path, process->pid, links);
	if (list_take(threads, context, list, process) || !listed)
		return;
	/* the process has as many threads as before, but others */
	list_read(list, path, process->pid, links);
	list_take(threads, context, list, process);
}

static uint64_t end_key(int64_t pid, uint64_t end)
{
	return end ^ hash_u64((uint64_t)pid);
}

/* Makes threads active that hold a lock that others of the process wait for, whatever call they are
 * in. */
static void holders_activate(struct live_peer_threads *threads, const struct peer_process *process)
{
	for (size_t i = process->first; i < threads->count; i++) {
		const struct peer_thread *holder =
			peer_thread_find(threads, process, threads->threads[i].holder);

		if (holder)
			threads->threads[holder - threads->threads].active = true;
	}
}

static void process_count(struct live_peer_threads *threads, struct peer_process *process)
{
	for (size_t i = process->first; i < threads->count; i++) {
		const struct peer_thread *thread = &threads->threads[i];

		if (thread->loops)
			process->loop = i + 1;
		if (thread->active)
			process->active = i + 1;
		process->loops += thread->loops;
		process->actives += thread->active;
	}
}

static void threads_index(struct live_peer_threads *threads, const struct peer_process *process)
{
	for (size_t i = process->first; i < threads->count; i++) {
		const struct peer_thread *thread = &threads->threads[i];
		uint64_t *in_call;

		*index_put(&threads->by_tid, (uint64_t)thread->tid, NULL) = i + 1;
		if (!thread->end)
			continue;
		in_call = index_put(&threads->by_end, end_key(process->pid, thread->end), NULL);
		*in_call = ((*in_call >> 32) + 1) << 32 | (i + 1);
	}
}

struct peer_process *peer_process_find(struct live_peer_threads *threads,
				       struct live_context *context, int64_t pid)
{
	bool added;
	struct peer_process *process =
		keyed_put(&threads->processes, sizeof(*process), (uint64_t)pid, &added);
	char path[64];
	uint64_t links;

	if (!added)
		return process;
	snprintf(path, sizeof(path), PROC "/%lld/task", (long long)pid);
	links = links_read(path);
	*process = (struct peer_process){
		.pid = pid, .first = threads->count, .whole = true, .single = links == 3};
	if (process->single || !links)
		return process;
	threads_read(threads, context, path, links, process);
	threads_index(threads, process);
	holders_activate(threads, process);
	process_count(threads, process);
	return process;
}

const struct peer_thread *peer_thread_at(const struct live_peer_threads *threads, size_t slot)
{
	return slot ? &threads->threads[slot - 1] : NULL;
}

const struct peer_thread *peer_thread_find(const struct live_peer_threads *threads,
					   const struct peer_process *process, int64_t tid)
{
	const uint64_t *slot = tid == ABSENT ? NULL : index_find(&threads->by_tid, (uint64_t)tid);

	return slot && *slot > process->first && *slot <= process->first + process->count
		       ? peer_thread_at(threads, *slot)
		       : NULL;
}

size_t peer_threads_in_call(const struct live_peer_threads *threads,
			    const struct peer_process *process, uint64_t end,
			    const struct peer_thread **thread)
{
	const uint64_t *in_call =
		end ? index_find(&threads->by_end, end_key(process->pid, end)) : NULL;

	*thread = peer_thread_at(threads, in_call ? (uint32_t)*in_call : 0);
	return in_call ? *in_call >> 32 : 0;
}

void live_peer_threads_begin(struct live_peer_threads *threads, int64_t now_ns)
{
	threads->lists.entry_bytes = sizeof(struct thread_list);
	threads->lists.entries_max = LISTS_MAX;
	threads->lists.drop = list_drop;
	threads->seen.entry_bytes = sizeof(struct seen_thread);
	threads->seen.entries_max = SEEN_MAX;
	threads->count = 0;
	keyed_empty(&threads->processes);
	index_empty(&threads->by_tid);
	index_empty(&threads->by_end);
	if (now_ns - threads->swept_ns < IDLE_NS)
		return;
	cache_sweep(&threads->lists, now_ns, IDLE_NS);
	cache_sweep(&threads->seen, now_ns, IDLE_NS);
	threads->swept_ns = now_ns;
}

void live_peer_threads_done(struct live_peer_threads *threads)
{
	free(threads->threads);
	keyed_done(&threads->processes);
	index_clear(&threads->by_tid);
	index_clear(&threads->by_end);
	cache_done(&threads->lists);
	cache_done(&threads->seen);
}
