/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live_edges.h"
#include "live_peers.h"
#include "live_runq.h"
#include "live/context/live_cpus.h"
#include "base/names.h"
#include "proc/proc.h"

#include <stdlib.h>
#include <string.h>

#define CHILDREN_BYTES 4096

bool edge_basis_moves(const struct edge_basis *basis)
{
	return basis->mutex || basis->kernel.blocker;
}

bool live_edge_holds(struct live_context *context, struct live_edges *edges, int64_t tid,
		     const struct edge_basis *basis, bool slept)
{
	if (basis->kernel.blocker)
		return live_kernel_lock_holds(&edges->kernel_locks, tid, &basis->kernel, slept);
	return !basis->mutex || live_mutex_holds(context, &edges->mutexes, basis->mutex);
}

/* Makes an edge to the process that has the locked file open: the likely one of several. In the
 * waiter's own process no thread can be chosen, as all of them have the file. */
static bool file_lock_edge(struct live_context *context, struct live_edges *edges,
			   const struct edge_waiter *waiter, struct edge *edge)
{
	struct wait_facts facts;
	bool known = lookup_wait_facts(context->lookup, waiter->sample, &waiter->hint, true,
				       context->now.scan_time.now_ns, &facts);

	edge->kind = EDGE_FILE_LOCK;
	if (facts.pid == ABSENT)
		return known;
	edge_to_process(context, edges, facts.pid, NULL,
			facts.count > 1 ? SURE_LIKELY : SURE_CERTAIN, edge);
	if (facts.pid == waiter->sample->thread.pid && edge->sure == SURE_LIKELY) {
		edge->tid = ABSENT;
		edge->sure = SURE_PROCESS;
		edge->thing =
			lookup_comm(context->lookup, facts.pid, context->now.scan_time.now_ns);
	}
	return true;
}

/* --- children */

/* Reads the thread's children, oldest first. Returns how many there are; *last: the last one. */
static size_t children_read(const struct sample *sample, int64_t *last)
{
	char text[CHILDREN_BYTES], *end;
	ssize_t length = proc_file_read(PROC, sample->thread.pid, sample->thread.tid, "children",
					text, sizeof(text));
	size_t count = 0;

	for (char *at = text; length > 0; at = end) {
		int64_t pid = strtoll(at, &end, 10);

		if (end == at)
			break;
		*last = pid;
		count++;
	}
	return count;
}

/* True if the thread waits for a child that uses its memory until it executes a program. */
static bool is_vfork(const struct sample *sample)
{
	return sample->now.state == STATE_DISK && sample->call.name &&
	       (!strcmp(sample->call.name, "vfork") || !strcmp(sample->call.name, "clone") ||
		!strcmp(sample->call.name, "clone3"));
}

static void vfork_edge(struct live_context *context, struct live_edges *edges,
		       const struct edge_waiter *waiter, struct edge *edge)
{
	int64_t last = ABSENT;
	size_t count = children_read(waiter->sample, &last);

	edge->kind = EDGE_CHILD;
	/* orphans that the thread adopts become its last children, too */
	if (count)
		edge_to_process(context, edges, last, NULL, count == 1 ? SURE_CERTAIN : SURE_LIKELY,
				edge);
}

/* --- CPUs */

static const char *group_of(struct live_context *context, const struct thread_state *record)
{
	const struct lookup_hint hint = {.sequence = record->sched.sequence_done};
	struct sample sample;

	record_sample(record, &context->now.scan_time, STATE_ON, &sample);
	lookup_fill(context->lookup, &sample, &hint, NEED_CGROUP, context->now.scan_time.now_ns);
	return sample.process.cgroup;
}

/* Makes an edge to the thread on the CPU that the waiter is queued for. The CPU is read from /proc:
 * a waker may have put the thread into the queue of another CPU than that of its record. A thread
 * that is held back for a quota waits for no other thread. */
static void cpu_edge(struct live_context *context, struct live_host *host,
		     const struct edge_waiter *waiter, struct edge *edge)
{
	const struct thread_state *record;
	const char *group;
	const struct thread_identity *on;
	bool due;
	struct proc_stat stat;

	if (proc_stat_read(PROC, waiter->sample->thread.pid, waiter->sample->thread.tid, &stat))
		return;
	record = live_cpus_thread(context, stat.cpu);
	if (record && record->identity.tid == waiter->sample->thread.tid)
		return;
	group = live_runq_budget(waiter->sample, stat.policy, record, &due);
	if (!group && due)
		return;
	if (!group)
		group = live_runq_throttled(host, waiter->sample, record);
	if (group) {
		edge->kind = EDGE_QUOTA;
		edge->sure = SURE_LIKELY;
		edge->thing = name_transient_string(group);
		return;
	}
	if (!record)
		return;
	on = &record->identity;
	*edge = (struct edge){
		.kind = EDGE_CPU,
		.sure = SURE_LIKELY,
		.tid = on->tid,
		.pid = on->tgid,
		.thing = name_transient(on->comm, sizeof(on->comm)),
		.group = context->wants.needs & NEED_CGROUP ? group_of(context, record) : NULL,
	};
}

/* --- all of them */

static void device_edge(const struct edge_waiter *waiter, struct edge *edge)
{
	edge->kind = EDGE_IO;
	edge->thing = waiter->sample->io.dev;
}

/* Makes an edge to the process that has the other end of what the thread waits on. */
static void end_edge(struct live_context *context, struct live_edges *edges,
		     const struct edge_waiter *waiter, const struct wait_facts *facts,
		     enum edge_kind kind, struct edge *edge)
{
	struct peer_end end = {.waiter = waiter, .inode = facts->inode};

	edge->kind = kind;
	if (facts->pid == ABSENT || facts->pid == waiter->sample->thread.pid)
		return;
	if (facts->inode != ABSENT)
		end.link = peer_link_of(kind, facts->inode);
	edge_to_process(context, edges, facts->pid, &end, SURE_LIKELY, edge);
}

static void process_edge(struct live_context *context, struct live_edges *edges,
			 const struct wait_facts *facts, struct edge *edge)
{
	edge->kind = facts->tid == ABSENT ? EDGE_CHILD : EDGE_THREAD;
	edge->tid = facts->tid;
	edge->pid = facts->pid;
	edge->sure = SURE_CERTAIN;
	if (facts->tid == ABSENT && facts->pid == ABSENT)
		edge->sure = SURE_NONE;
	else if (facts->tid == ABSENT)
		edge_to_process(context, edges, facts->pid, NULL, SURE_CERTAIN, edge);
}

/* Makes an edge to the last waker, but not where /proc numbers threads in its own way: the waker's
 * id is the kernel's. */
static void waker_edge(struct live_context *context, struct live_edges *edges,
		       const struct edge_waiter *waiter, struct edge *edge)
{
	int64_t uid;

	if (context->view.translated)
		return;
	live_last_waker_edge(&edges->last_wakers, waiter, edge);
	if (edge->tid != ABSENT && proc_ids_read(PROC, edge->tid, &uid, &edge->pid))
		*edge = edge_absent;
}

static bool facts_edge(struct live_context *context, struct live_edges *edges,
		       const struct edge_waiter *waiter, struct edge *edge, size_t *mutex)
{
	const char *syscall = waiter->sample->call.name;
	struct wait_facts facts;
	bool known = lookup_wait_facts(context->lookup, waiter->sample, &waiter->hint, false,
				       context->now.scan_time.now_ns, &facts);

	switch (facts.kind) {
	case WAIT_LOCK:
		if (!strncmp(syscall, "futex", 5))
			live_mutex_edge(context, &edges->mutexes, waiter, edge, mutex);
		else if (!strncmp(syscall, "f", 1))
			return file_lock_edge(context, edges, waiter, edge);
		if (edge->kind == EDGE_NONE)
			waker_edge(context, edges, waiter, edge);
		return true;
	case WAIT_EVENT:
		waker_edge(context, edges, waiter, edge);
		return true;
	case WAIT_PROCESS:
		process_edge(context, edges, &facts, edge);
		return true;
	case WAIT_PIPE:
		if (facts.count > 1) /* beside what signals and the process itself make ready */
			return true;
		end_edge(context, edges, waiter, &facts, EDGE_PIPE, edge);
		return known;
	case WAIT_SOCKET:
		end_edge(context, edges, waiter, &facts, EDGE_SOCKET, edge);
		return known;
	case WAIT_SET:
		if (facts.requested_pid != ABSENT) {
			facts.pid = facts.requested_pid;
			facts.inode = facts.requested_inode;
			end_edge(context, edges, waiter, &facts, EDGE_SOCKET, edge);
		}
		return known || facts.requested_pid != ABSENT;
	case WAIT_IO:
	case WAIT_FILE:
		if (waiter->sample->io.dev)
			device_edge(waiter, edge);
		return true;
	case WAIT_TIMER:
		edge->firm = true;
		return true;
	default:
		return known || facts.kind != WAIT_UNKNOWN;
	}
}

bool live_edge_find(struct live_context *context, struct live_edges *edges,
		    const struct edge_waiter *waiter, struct edge *edge, struct edge_basis *basis)
{
	const struct sample *sample = waiter->sample;

	*edge = edge_absent;
	*basis = (struct edge_basis){0};
	if (sample->now.state == STATE_DISK &&
	    live_kernel_lock_edge(context, &edges->kernel_locks, waiter, edge, &basis->kernel))
		return true;
	if (sample->now.state == STATE_RQ)
		cpu_edge(context, edges->host, waiter, edge);
	else if (is_vfork(sample))
		vfork_edge(context, edges, waiter, edge);
	else if (sample->now.state == STATE_DISK && sample->io.dev)
		device_edge(waiter, edge);
	else if ((sample->now.state == STATE_SLEEP || sample->now.state == STATE_DISK) &&
		 sample->thread.kthread != 1 && sample->call.name)
		return facts_edge(context, edges, waiter, edge, &basis->mutex);
	/* a sleeper without a system call woke before its registers could be read */
	return sample->now.state != STATE_SLEEP || sample->thread.kthread == 1 || sample->call.name;
}

void live_edges_begin(struct live_edges *edges, int64_t scan_time_ns)
{
	edges->scan_time_ns = scan_time_ns;
	live_mutexes_begin(&edges->mutexes);
	live_peer_threads_begin(&edges->peers, scan_time_ns);
	live_kernel_locks_begin(&edges->kernel_locks);
}

void live_edges_done(struct live_edges *edges)
{
	live_mutexes_done(&edges->mutexes);
	live_peer_threads_done(&edges->peers);
	live_kernel_locks_done(&edges->kernel_locks);
	live_last_wakers_done(&edges->last_wakers);
	live_peer_wakers_done(&edges->peer_wakers);
	*edges = (struct live_edges){0};
}
