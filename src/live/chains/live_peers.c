/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/chains/live_peers.h"
#include "live/chains/edge_waiter.h"
#include "live/context/live_context.h"
#include "live/chains/live_wakers.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/names.h"
#include "proc/proc.h"
#include "proc/user_memory.h"
#include "waits/wait_object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define PEERS_MAX 1024	    /* threads of one process that are looked at */
#define PEERS_SCAN_MAX 4096 /* threads of all processes that are looked at in one scan */
#define SEEN_MAX 32768
#define LISTS_MAX 4096
#define IDLE_NS (5 * NS_PER_SECOND) /* lists and threads not used for so long are forgotten */

/* Go's runtime begins its heap here (the first arena hint of its malloc.go); no other program is
 * known to use the address. */
#define GO_HEAP UINT64_C(0xc000000000)
#define SET_MAX 1024 /* descriptors of an epoll set that is looked through */

struct peer_thread {
	int64_t tid;
	int64_t holder; /* holder of the lock that it waits for; ABSENT: it waits for none */
	bool active;	/* on a CPU, in a queue for one, in D; asleep as part of a request */
	bool rests;	/* call in which threads wait for something to do */
	bool loops;	/* call that waits for several descriptors, not just for new connections */
	int64_t set_fd; /* epoll set of set_count descriptors that it waits for; ABSENT: none */
	int64_t set_count;
	/* the socket or pipe that its call is about, or the socket of the client that it works for;
	 * by peer_link_of(); 0: none */
	uint64_t end;
};

/* A process. At most 1024 of its threads are known. */
struct peer_process {
	int64_t pid;
	size_t first, count; /* slots in struct live_peers' threads */
	bool whole;	     /* these are all its threads */
	bool single;	     /* the process has one thread, which is not among these */
	bool goroutines;     /* a Go program: no thread has work of its own while it sleeps */
	size_t actives, loops;
	size_t active, loop; /* slot of the last such thread, plus one; 0: none */
};

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
	int64_t listed;		  /* number of threads that it had; 0: not listed */
	int64_t *tids;
	size_t count, capacity;
	bool whole, goroutines;
};

static void list_drop(void *entry)
{
	free(((struct thread_list *)entry)->tids);
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
	seen->until_ns =
		waits_until(lookup_waits(context->lookup), waiter->sample->thread.tid,
			    waiter->record->sched.sequence_done, context->now.scan_time.now_ns);
	seen->record_key = waiter->record->key;
	seen->record_tid = waiter->record->sched.tid;
	seen->sequence = waiter->record->sched.sequence_done;
	seen->thread = *thread;
}

/* Reads what a thread does, also one that is not listed for its process. False: it is gone, or of
 * another process. */
static bool peer_thread_read(struct live_peers *threads, struct live_context *context, int64_t tid,
			     int64_t pid, struct peer_thread *thread)
{
	const struct state_row *state;
	struct wait_facts facts;
	struct edge_looked looked;
	const struct sample *sample = &looked.sample;
	const struct wait_rule *rule;
	bool known, added;
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
	known = waits_facts(lookup_waits(context->lookup), sample, &looked.waiter.hint, false,
			    context->now.scan_time.now_ns, &facts);
	/* why a thread sleeps is known when it was filled */
	rule = wait_rule_find(sample->wait.why);
	*thread = (struct peer_thread){
		.tid = tid,
		.holder = facts.kind == WAIT_LOCK ? facts.tid : ABSENT,
		.active = (state && state->active) || (rule && rule->traits & WAIT_WORKS),
		.rests = rule && rule->traits & WAIT_OF_POOL,
		.end = facts.served_inode == ABSENT ? wait_end_of_link(sample->file.name)
						    : wait_end(EDGE_SOCKET, facts.served_inode),
		/* a poll of one descriptor is as a read of it */
		.loops = facts.polls && !facts.listens && (facts.kept || facts.count != 1),
		.set_fd = facts.kept ? sample->file.fd : ABSENT,
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

static void list_read(struct thread_list *list, int64_t pid, int64_t count)
{
	DIR *dir = proc_dir_open(PROC, pid, "task");
	int64_t tid;

	list->listed = count;
	list->count = 0;
	list->whole = true;
	while (list->whole && (tid = proc_dir_next(dir)) >= 0) {
		list->whole = list->count < PEERS_MAX;
		if (!list->whole)
			break;
		list->tids = memory_grow(list->tids, &list->capacity, list->count + 1,
					 sizeof(*list->tids));
		list->tids[list->count++] = tid;
	}
	if (dir)
		closedir(dir);
	list->goroutines = has_goroutines(pid);
}

/* Reads the threads of a list. False: one of them is gone. */
static bool list_take(struct live_peers *threads, struct live_context *context,
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

static void threads_read(struct live_peers *threads, struct live_context *context, int64_t count,
			 struct peer_process *process)
{
	bool added;
	struct thread_list *list = cache_get(&threads->lists, (uint64_t)process->pid,
					     context->now.scan_time.now_ns, &added);
	bool listed = list->listed == count;

	if (!listed)
		list_read(list, process->pid, count);
	if (list_take(threads, context, list, process) || !listed)
		return;
	/* the process has as many threads as before, but others */
	list_read(list, process->pid, count);
	list_take(threads, context, list, process);
}

static uint64_t end_key(int64_t pid, uint64_t end)
{
	return end ^ hash_u64((uint64_t)pid);
}

/* Return a thread of a process, by its slot plus one, or by its id; NULL: there is none. */
static const struct peer_thread *peer_thread_at(const struct live_peers *threads, size_t slot)
{
	return slot ? &threads->threads[slot - 1] : NULL;
}

static const struct peer_thread *peer_thread_find(const struct live_peers *threads,
						  const struct peer_process *process, int64_t tid)
{
	const uint64_t *slot = tid == ABSENT ? NULL : index_find(&threads->by_tid, (uint64_t)tid);

	return slot && *slot > process->first && *slot <= process->first + process->count
		       ? peer_thread_at(threads, *slot)
		       : NULL;
}

/* Makes threads active that hold a lock that others of the process wait for, whatever call they are
 * in. */
static void holders_activate(struct live_peers *threads, const struct peer_process *process)
{
	for (size_t i = process->first; i < threads->count; i++) {
		const struct peer_thread *holder =
			peer_thread_find(threads, process, threads->threads[i].holder);

		if (holder)
			threads->threads[holder - threads->threads].active = true;
	}
}

static void process_count(struct live_peers *threads, struct peer_process *process)
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

static void threads_index(struct live_peers *threads, const struct peer_process *process)
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

/* Finds a process; its threads are read if this scan has not done so. What this and the functions
 * below return is valid until the next process is looked at. */
static struct peer_process *peer_process_find(struct live_peers *threads,
					      struct live_context *context, int64_t pid)
{
	bool added;
	struct peer_process *process =
		keyed_put(&threads->processes, sizeof(*process), (uint64_t)pid, &added);
	int64_t count;

	if (!added)
		return process;
	count = proc_thread_count(PROC, pid);
	*process = (struct peer_process){
		.pid = pid, .first = threads->count, .whole = true, .single = count == 1};
	if (process->single || !count)
		return process;
	threads_read(threads, context, count, process);
	threads_index(threads, process);
	holders_activate(threads, process);
	process_count(threads, process);
	return process;
}

/* Returns how many threads are in a call on that end; *thread: one of them. */
static size_t peer_threads_in_call(const struct live_peers *threads,
				   const struct peer_process *process, uint64_t end,
				   const struct peer_thread **thread)
{
	const uint64_t *in_call =
		end ? index_find(&threads->by_end, end_key(process->pid, end)) : NULL;

	*thread = peer_thread_at(threads, in_call ? (uint32_t)*in_call : 0);
	return in_call ? *in_call >> 32 : 0;
}

/* --- the choice */

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
			int64_t inode)
{
	const char *text;

	if (loop->set_fd == ABSENT || inode == ABSENT || loop->set_count > SET_MAX)
		return true;
	text = proc_fdinfo_read(PROC, process->pid, loop->tid, (int)loop->set_fd, NULL);
	/* the kernel shows inodes since 4.13 */
	return !strstr(text, " ino:") || set_has(text, (uint64_t)inode);
}

/* Threads of a process that decide to which one an edge leads. NULL: there is none, or where only
 * one would decide, there are several. */
struct peer_choice {
	const struct peer_thread *in_call, *active, *loop; /* the only such thread */
	const struct peer_thread *waker;
};

static void choice_find(const struct live_peers *threads, const struct peer_process *process,
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
static void waker_find(struct live_context *context, struct live_peers *threads,
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
					       int64_t inode)
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
	return process->whole && choice->loop && loop_serves(process, choice->loop, inode)
		       ? choice->loop
		       : NULL;
}

/* Fills the edge's thread. The edge is firm if the thread is in a call on the other end, or serves
 * the connection. */
static void peer_choose(struct live_context *context, struct live_peers *peers,
			struct live_wakers *wakers, const struct peer_process *process,
			const struct edge_waiter *waiter, struct edge *edge)
{
	uint64_t end = edge->inode == ABSENT ? 0 : wait_end(edge->kind, edge->inode);
	struct peer_waker waker = {.tid = ABSENT};
	const struct peer_thread *thread;
	struct peer_choice choice;
	struct peer_thread other;

	if (edge->to_end)
		waker = live_peer_waker(wakers, context, waiter, process->pid, edge->inode);
	choice_find(peers, process, end, waker.tid, &choice);
	waker_find(context, peers, process, waker.tid, &other, &choice);
	thread = choice_decide(process, &choice, waker.settled, edge->inode);
	edge->tid = thread ? thread->tid : ABSENT;
	edge->firm = thread &&
		     (thread == choice.in_call || (thread == choice.waker && !process->goroutines &&
						   waker_serves(thread, waker.settled)));
}

void edge_to_process(struct live_context *context, struct live_peers *peers,
		     struct live_wakers *wakers, const struct edge_waiter *waiter,
		     struct edge *edge)
{
	struct peer_process *process = peer_process_find(peers, context, edge->pid);

	if (process->single) {
		edge->tid = edge->pid;
		edge->firm = true;
	} else {
		peer_choose(context, peers, wakers, process, waiter, edge);
		edge->sure = edge->tid == ABSENT ? SURE_PROCESS : SURE_LIKELY;
	}
	/* all threads of the waiter's own process have what one of them holds */
	if (edge->pid == waiter->sample->thread.pid && edge->sure == SURE_LIKELY) {
		edge->tid = ABSENT;
		edge->sure = SURE_PROCESS;
	}
	if (edge->sure == SURE_PROCESS)
		edge->thing =
			lookup_comm(context->lookup, edge->pid, context->now.scan_time.now_ns);
}

void live_peers_begin(struct live_peers *threads, int64_t now_ns)
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

void live_peers_done(struct live_peers *threads)
{
	free(threads->threads);
	keyed_done(&threads->processes);
	index_clear(&threads->by_tid);
	index_clear(&threads->by_end);
	cache_done(&threads->lists);
	cache_done(&threads->seen);
}
