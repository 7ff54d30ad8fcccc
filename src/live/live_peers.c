/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live_peers.h"
#include "live_edges.h"
#include "base/memory.h"
#include "base/names.h"
#include "proc/proc.h"
#include "proc/user_memory.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>

#define PEERS_MAX 256	    /* threads of one process that are looked at */
#define PEERS_SCAN_MAX 4096 /* and of all in one scan */
#define SET_MAX 1024	    /* descriptors of an epoll set that is looked through */
#define SET_BYTES 131072    /* that so many take in fdinfo */

/* Go's runtime begins its heap here (the first arena hint of its malloc.go); no other program is
 * known to use the address. */
#define GO_HEAP UINT64_C(0xc000000000)

/* True for the classes of waits (sample/why_table.c) in which threads of pools wait for work. */
static bool is_rest(const char *why)
{
	static const char *const rests[] = {"futex", "server", "socket", "event", "ring", "signal"};

	for (size_t i = 0; why && i < sizeof(rests) / sizeof(*rests); i++)
		if (!strcmp(why, rests[i]))
			return true;
	return false;
}

/* Why a thread sleeps is known when it was filled. False: it is gone, or of another process. */
static bool peer_read(struct live_context *context, int64_t tid, int64_t pid,
		      struct peer_thread *thread)
{
	const struct state_row *state;
	struct wait_facts facts;
	struct edge_asker asker;
	bool epolls;

	if (!live_edge_asker(context, tid, pid, &asker) || asker.sample.pid != pid)
		return false;
	state = state_row(asker.sample.state);
	lookup_wait_facts(context->lookup, &asker.sample, &asker.hint, false,
			  context->now.moment.now_ns, &facts);
	epolls = asker.sample.syscall && !strncmp(asker.sample.syscall, "epoll", 5);
	*thread = (struct peer_thread){
		.tid = tid,
		.holder = facts.kind == WAIT_LOCK ? facts.tid : ABSENT,
		.active = (state && state->active) || why_works(asker.sample.why),
		.rests = is_rest(asker.sample.why),
		.link = asker.sample.filename,
		.loops = asker.sample.syscall && (strstr(asker.sample.syscall, "poll") ||
						  strstr(asker.sample.syscall, "select")),
		.set_fd = epolls ? asker.sample.fd : ABSENT,
		.set_count = facts.count,
	};
	return true;
}

static void peer_add(struct live_context *context, struct live_edges *edges, int64_t tid,
		     int64_t pid)
{
	struct peer_thread thread;

	if (!peer_read(context, tid, pid, &thread))
		return;
	edges->threads = memory_grow(edges->threads, &edges->thread_capacity,
				     edges->thread_count + 1, sizeof(*edges->threads));
	edges->threads[edges->thread_count++] = thread;
}

/* Whoever holds a lock that others of the process wait for works, whatever call it is in. */
static void holders_activate(const struct live_edges *edges, const struct peer_process *process)
{
	struct peer_thread *threads = process->count ? &edges->threads[process->first] : NULL;

	for (size_t i = 0; i < process->count; i++) {
		if (threads[i].holder == ABSENT ||
		    (i && threads[i].holder == threads[i - 1].holder))
			continue;
		for (size_t j = 0; j < process->count; j++)
			threads[j].active |= threads[j].tid == threads[i].holder;
	}
}

static bool has_goroutines(int64_t pid)
{
	char byte;

	return user_memory_read(PROC, pid, pid, GO_HEAP, &byte, 1) == 1;
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
	process->goroutines = has_goroutines(pid);
	holders_activate(edges, process);
}

/* Found out once in a scan. */
static const struct peer_process *peers_of(struct live_context *context, struct live_edges *edges,
					   int64_t pid)
{
	bool added;
	uint64_t *place = index_put(&edges->process_places, (uint64_t)pid, &added);
	struct peer_process process = {.pid = pid, .first = edges->thread_count, .whole = true};

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

/* Whether an epoll set, as fdinfo tells it, waits until the socket can be read from: proc(5). */
static bool set_has(const char *text, uint64_t inode)
{
	char word[40];
	const char *at, *line;

	snprintf(word, sizeof(word), " ino:%llx ", (unsigned long long)inode);
	at = strstr(text, word);
	for (line = at; line && line > text && line[-1] != '\n';)
		line--;
	line = line ? strstr(line, "events:") : NULL;
	return line && line < at && strtoul(line + strlen("events:"), NULL, 16) & EPOLLIN;
}

/* Whether an event loop waits for the end, too. Pools take a connection out of their loop's set
 * while a thread of theirs serves it. A set that can't be looked through is taken to have it. */
static bool loop_serves(const struct peer_process *process, const struct peer_thread *loop,
			const struct peer_end *end)
{
	static char text[SET_BYTES];
	char name[32];

	if (loop->set_fd == ABSENT || end->inode == ABSENT || loop->set_count > SET_MAX)
		return true;
	snprintf(name, sizeof(name), "fdinfo/%lld", (long long)loop->set_fd);
	/* the kernel tells inodes since 4.13 */
	return proc_file_read(PROC, process->pid, loop->tid, name, text, sizeof(text)) <= 0 ||
	       !strstr(text, " ino:") || set_has(text, (uint64_t)end->inode);
}

/* What the threads of a process tell of which one an edge leads to. */
struct peer_choice {
	const struct peer_thread *in_call, *active, *loop, *waker; /* NULL: none */
	size_t in_calls, actives, loops;
};

static void choice_count(const struct live_edges *edges, const struct peer_process *process,
			 const char *link, int64_t waker_tid, struct peer_choice *choice)
{
	*choice = (struct peer_choice){0};
	for (size_t i = process->first; i < process->first + process->count; i++) {
		const struct peer_thread *thread = &edges->threads[i];

		if (link && thread->link && !strcmp(thread->link, link)) {
			choice->in_call = thread;
			choice->in_calls++;
		}
		if (thread->loops) {
			choice->loop = thread;
			choice->loops++;
		}
		if (thread->active) {
			choice->active = thread;
			choice->actives++;
		}
		if (thread->tid == waker_tid)
			choice->waker = thread;
	}
}

/* The thread that ended the last waits on this connection is looked at by itself where it is not
 * among the threads that were listed. */
static void waker_find(struct live_context *context, const struct peer_process *process,
		       int64_t waker_tid, struct peer_thread *thread, struct peer_choice *choice)
{
	if (!choice->waker && !process->whole && waker_tid != ABSENT &&
	    peer_read(context, waker_tid, process->pid, thread))
		choice->waker = thread;
}

/* The thread that an edge leads to, NULL: not known. In this order: the only one that is in a call
 * on the other end; the one that ended the last waits on this connection, if it works, or if it has
 * done so for long and does not wait for work; the only one that works; the former though it
 * sleeps; an event loop, if nobody has ended a wait. A thread that rests in a queue may take
 * anybody's request next time. */
static const struct peer_thread *choice_decide(const struct peer_process *process,
					       const struct peer_choice *choice, bool settled,
					       const struct peer_end *end)
{
	const struct peer_thread *waker = choice->waker;
	const struct peer_thread *only = choice->actives == 1 ? choice->active : NULL;

	if (choice->in_calls == 1)
		return choice->in_call;
	if (process->goroutines)
		return process->whole ? only : NULL;
	if (waker && (waker->active || (settled && !waker->rests && !waker->loops)))
		return waker;
	if (process->whole && choice->actives)
		return only;
	if (waker)
		return waker->rests ? NULL : waker;
	return process->whole && choice->loops == 1 && loop_serves(process, choice->loop, end)
		       ? choice->loop
		       : NULL;
}

static int64_t peer_choose(struct live_context *context, struct live_edges *edges,
			   const struct peer_process *process, const struct peer_end *end)
{
	static const struct peer_end nothing = {.inode = ABSENT};
	struct peer_waker waker = {.tid = ABSENT};
	const struct peer_thread *thread;
	struct peer_choice choice;
	struct peer_thread other;

	if (end)
		waker = live_peer_wakers_note(&edges->peer_wakers, context, end->asker,
					      process->pid, end->inode);
	choice_count(edges, process, end && *end->link ? end->link : NULL, waker.tid, &choice);
	waker_find(context, process, waker.tid, &other, &choice);
	thread = choice_decide(process, &choice, waker.settled, end ? end : &nothing);
	return thread ? thread->tid : ABSENT;
}

void edge_to_process(struct live_context *context, struct live_edges *edges, int64_t pid,
		     const struct peer_end *end, enum edge_sure sure, struct edge *edge)
{
	const struct peer_process *process = peers_of(context, edges, pid);
	struct proc_stat stat;

	edge->pid = pid;
	if (process->single) {
		edge->tid = pid;
		edge->sure = sure;
		return;
	}
	edge->tid = peer_choose(context, edges, process, end);
	edge->sure = edge->tid == ABSENT ? SURE_PROCESS : SURE_LIKELY;
	if (edge->tid == ABSENT && !proc_stat_read(PROC, 0, pid, &stat))
		edge->thing = name_lent_string(stat.comm);
}
