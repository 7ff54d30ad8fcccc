/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live_peers.h"
#include "live_edges.h"
#include "base/names.h"
#include "proc/proc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define SET_MAX 1024	 /* descriptors of an epoll set that is looked through */
#define SET_BYTES 131072 /* bytes of SET_MAX descriptors in fdinfo */

/* True if an epoll set, as fdinfo shows it (proc(5)), waits until the socket can be read from. */
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

/* True if an event loop waits for the end, too. Pools take a connection out of their loop's set
 * while a thread of theirs serves it. A set that can't be looked through is taken to have it. */
static bool loop_serves(const struct peer_process *process, const struct peer_thread *loop,
			const struct peer_end *end)
{
	static char text[SET_BYTES];
	char name[32];

	if (loop->set_fd == ABSENT || end->inode == ABSENT || loop->set_count > SET_MAX)
		return true;
	snprintf(name, sizeof(name), "fdinfo/%lld", (long long)loop->set_fd);
	/* the kernel shows inodes since 4.13 */
	return proc_file_read(PROC, process->pid, loop->tid, name, text, sizeof(text)) <= 0 ||
	       !strstr(text, " ino:") || set_has(text, (uint64_t)end->inode);
}

/* Threads of a process that decide to which one an edge leads. NULL: there is none, or where only
 * one would decide, there are several. */
struct peer_choice {
	const struct peer_thread *in_call, *active, *loop; /* the only such thread */
	const struct peer_thread *waker;
};

static void choice_find(const struct live_peer_threads *threads, const struct peer_process *process,
			uint64_t end, int64_t waker_tid, struct peer_choice *choice)
{
	*choice = (struct peer_choice){
		.active = process->actives == 1 ? peer_thread_at(threads, process->active) : NULL,
		.loop = process->loops == 1 ? peer_thread_at(threads, process->loop) : NULL,
		.waker = peer_thread_find(threads, process, waker_tid),
	};
	if (peer_threads_in_call(threads, process, end, &choice->in_call) != 1)
		choice->in_call = NULL;
}

/* Looks by itself at the thread that ended the last waits on this connection, where it is not among
 * the threads that were listed. */
static void waker_find(struct live_context *context, struct live_peer_threads *threads,
		       const struct peer_process *process, int64_t waker_tid,
		       struct peer_thread *thread, struct peer_choice *choice)
{
	if (!choice->waker && !process->whole && waker_tid != ABSENT &&
	    peer_thread_read(threads, context, waker_tid, process->pid, thread))
		choice->waker = thread;
}

/* True for a waker that has ended the waits on its connection for long, and does not wait for work:
 * it serves the connection. */
static bool waker_serves(const struct peer_thread *waker, bool settled)
{
	return settled && !waker->rests && !waker->loops;
}

/* Returns the thread that an edge leads to; NULL: not known. The first of these: the only thread
 * that is in a call on the other end; the waker of the last waits on this connection, if it works,
 * or if it has ended them for long and does not wait for work; the only thread that works; the
 * waker though it sleeps; an event loop, if there is no waker. A thread that rests in a queue may
 * take any request next time. */
static const struct peer_thread *choice_decide(const struct peer_process *process,
					       const struct peer_choice *choice, bool settled,
					       const struct peer_end *end)
{
	const struct peer_thread *waker = choice->waker;

	if (choice->in_call)
		return choice->in_call;
	if (process->goroutines)
		return process->whole ? choice->active : NULL;
	if (waker && (waker->active || waker_serves(waker, settled)))
		return waker;
	if (process->whole && process->actives)
		return choice->active;
	if (waker)
		return waker->rests ? NULL : waker;
	return process->whole && choice->loop && loop_serves(process, choice->loop, end)
		       ? choice->loop
		       : NULL;
}

/* Fills the edge's thread. The edge is firm if the thread is in a call on the other end, or serves
 * the connection. */
static void peer_choose(struct live_context *context, struct live_edges *edges,
			const struct peer_process *process, const struct peer_end *end,
			struct edge *edge)
{
	static const struct peer_end nothing = {.inode = ABSENT};
	struct peer_waker waker = {.tid = ABSENT};
	const struct peer_thread *thread;
	struct peer_choice choice;
	struct peer_thread other;

	if (end)
		waker = live_peer_wakers_note(&edges->peer_wakers, context, end->waiter,
					      process->pid, end->inode);
	choice_find(&edges->peers, process, end ? end->link : 0, waker.tid, &choice);
	waker_find(context, &edges->peers, process, waker.tid, &other, &choice);
	thread = choice_decide(process, &choice, waker.settled, end ? end : &nothing);
	edge->tid = thread ? thread->tid : ABSENT;
	edge->firm = thread &&
		     (thread == choice.in_call || (thread == choice.waker && !process->goroutines &&
						   waker_serves(thread, waker.settled)));
}

void edge_to_process(struct live_context *context, struct live_edges *edges, int64_t pid,
		     const struct peer_end *end, enum edge_sure sure, struct edge *edge)
{
	struct peer_process *process = peer_process_find(&edges->peers, context, pid);

	edge->pid = pid;
	if (process->single) {
		edge->tid = pid;
		edge->sure = sure;
		edge->firm = true;
		return;
	}
	peer_choose(context, edges, process, end, edge);
	edge->sure = edge->tid == ABSENT ? SURE_PROCESS : SURE_LIKELY;
	if (edge->tid == ABSENT)
		edge->thing = lookup_comm(context->lookup, pid, context->now.scan_time.now_ns);
}
