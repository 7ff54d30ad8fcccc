/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/chains/live_edges.h"
#include "live/context/live_runq.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/names.h"
#include "live/context/live_cpus.h"
#include "proc/proc.h"
#include "waits/wait_object.h"

#include <sched.h>
#include <stdlib.h>

/* --- locks whose holder may change while threads wait */

/* A lock is read again after this time: programs must not let go of what another thread holds, but
 * can. */
#define READ_STILL_NS (NS_PER_SECOND / 4)
/* The holder of a lock of the kernel that is read this long after the scan may have got it since
 * then, if it has run. */
#define LATE_NS 1000000

struct held {
	struct wait_facts facts;
	bool known;	       /* the facts are complete */
	bool checked, changed; /* lock was looked at again; it had another holder then */
	int64_t read_ns;       /* scan time of the scan that read it */
	struct sample waiter;  /* thread whose call it was read for */
	struct lookup_hint hint;
};

static bool facts_read(struct live_context *context, const struct sample *sample,
		       const struct lookup_hint *hint, bool anew, struct wait_facts *facts)
{
	return waits_facts(lookup_waits(context->lookup), sample, hint, anew,
			   context->now.scan_time.now_ns, facts);
}

/* Returns one key for all threads of a process that wait in the same call for the same lock. */
static uint64_t held_key(const struct sample *sample)
{
	return hash_u64((uint64_t)sample->call.arg[0]) ^
	       hash_u64((uint64_t)sample->thread.pid + 1) ^
	       hash_u64(((uint64_t)sample->call.arg[1] << 32 ^ (uint64_t)sample->call.arg[2]) + 2);
}

/* True if the thread has been off its CPU since since_ns, so that it can have changed nothing. */
static bool has_not_run_since(struct live_context *context, int64_t tid, int64_t since_ns)
{
	struct thread_table *table = &context->kernel.table;
	const struct thread_state *record;
	struct thread_state copy;
	uint64_t sequence;
	uint32_t key;

	/* the array goes by the kernel's ids, which are others in a container */
	if (context->view.translated || thread_table_key(table, (uint32_t)tid, &key))
		return false;
	record = thread_table_mapped(table, key);
	if (!record) { /* until 5.4 */
		if (thread_table_get(table, key, &copy))
			return false;
		record = &copy;
	}
	/* thread_table_is_out() says if the record has changed since */
	sequence = __atomic_load_n(&record->sched.sequence_done, __ATOMIC_ACQUIRE);
	return (int64_t)__atomic_load_n(&record->sched.out_ns, __ATOMIC_RELAXED) <= since_ns &&
	       thread_table_is_out(table, key, (uint32_t)tid, sequence);
}

/* True for a lock that is certain to have the holder that was read, as the holder has to let go of
 * it and has not run. Locks of runtimes have turns: one may be passed on for its holder. */
static bool holder_remains(struct live_context *context, const struct held *held)
{
	return held->facts.tid != ABSENT && held->facts.turn == ABSENT &&
	       context->now.scan_time.now_ns - held->read_ns < READ_STILL_NS &&
	       has_not_run_since(context, held->facts.tid, held->read_ns);
}

/* Finds the lock of a waiter. Returns its slot in the list of this scan, plus one. */
static size_t held_find(struct live_context *context, struct live_edges *edges,
			const struct edge_waiter *waiter)
{
	struct held_list *now = &edges->held, *before = &edges->held_before;
	uint64_t key = held_key(waiter->sample);
	struct held *held;
	bool added;
	uint64_t *slot = index_put(&now->slots, key, &added), *known;

	if (!added)
		return *slot;
	now->locks = memory_grow(now->locks, &now->capacity, now->count + 1, sizeof(*now->locks));
	held = &now->locks[now->count];
	known = index_find(&before->slots, key);
	if (known && holder_remains(context, &before->locks[*known - 1])) {
		*held = before->locks[*known - 1];
		held->checked = false;
	} else {
		*held = (struct held){.read_ns = context->now.scan_time.now_ns,
				      .waiter = *waiter->sample,
				      .hint = waiter->hint};
		held->known = facts_read(context, &held->waiter, &held->hint, true, &held->facts);
	}
	*slot = ++now->count;
	return *slot;
}

static bool held_holds(struct live_context *context, struct held *held)
{
	struct wait_facts facts;

	if (!held->checked && !holder_remains(context, held)) {
		facts_read(context, &held->waiter, &held->hint, true, &facts);
		held->changed = facts.tid != held->facts.tid || facts.pid != held->facts.pid ||
				facts.turn != held->facts.turn;
	}
	held->checked = true;
	return !held->changed;
}

bool edge_basis_moves(const struct edge_basis *basis)
{
	return basis->held || basis->kernel.blocker;
}

bool live_edge_holds(struct live_context *context, struct live_edges *edges, int64_t tid,
		     const struct edge_basis *basis, bool slept)
{
	if (basis->kernel.blocker)
		return live_kernel_lock_holds(&edges->kernel_locks, tid, &basis->kernel, slept);
	return !basis->held || held_holds(context, &edges->held.locks[basis->held - 1]);
}

void live_edge_doubt(struct live_context *context, const struct edge_basis *basis,
		     struct edge *edge)
{
	int64_t now_ns = context->now.scan_time.now_ns;

	if (basis->kernel.blocker && edge->sure == SURE_CERTAIN &&
	    clock_monotonic_ns() - now_ns > LATE_NS &&
	    !has_not_run_since(context, edge->tid, now_ns))
		edge->sure = SURE_LIKELY;
}

/* --- CPUs */

static const char *group_of(struct live_context *context, const struct thread_state *record)
{
	const struct lookup_hint hint = {.sequence = record->sched.sequence_done};
	struct sample sample;

	record_sample(record, &context->now.scan_time, STATE_ON, &sample);
	lookup_fill(context->lookup, &sample, &hint, NEED_CGROUP, context->now.scan_time.now_ns);
	return sample.cgroup.path;
}

/* Makes an edge to the thread on the CPU that the waiter is queued for. A thread that is held back
 * for a quota waits for no other thread. */
static void cpu_edge(struct live_context *context, struct live_host *host,
		     const struct edge_waiter *waiter, struct edge *edge)
{
	const struct thread_state *record;
	const char *group;
	const struct thread_identity *on;
	int64_t cpu, policy;
	bool due;

	/* /proc does not show which thread has the CPU */
	if (context->proc || !live_runq_where(waiter->sample, &cpu, &policy))
		return;
	record = live_cpus_thread(context, cpu);
	if (record && record->identity.tid == waiter->sample->thread.tid)
		return;
	group = live_runq_budget(waiter->sample, policy, record, &due);
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
	edge->kind = EDGE_CPU;
	edge->sure = SURE_LIKELY;
	edge->tid = on->tid;
	edge->pid = on->tgid;
	edge->thing = edge->oncpu = name_transient(on->comm, sizeof(on->comm));
	if (context->wants.needs & (NEED_CGROUP | NEED_NEIGHBOUR))
		edge->group = group_of(context, record);
	if (context->wants.needs & NEED_NEIGHBOUR &&
	    group_of(context, waiter->record) != edge->group)
		edge->neighbour = edge->group;
}

/* --- things that threads wait for (waits/wait_object.h) */

/* Makes an edge to the last waker, but not where /proc numbers threads in its own way: the waker's
 * id is the kernel's. */
static void waker_edge(struct live_context *context, struct live_edges *edges,
		       const struct edge_waiter *waiter, struct edge *edge)
{
	int64_t uid;

	if (context->view.translated)
		return;
	live_last_waker_edge(&edges->wakers, waiter, edge);
	if (edge->tid != ABSENT && proc_ids_read(PROC, edge->tid, &uid, &edge->pid))
		*edge = edge_absent;
}

/* True if the kernel function or stack that a thread in D sleeps in shows the object: a request to
 * a disk that the thread has in flight is another matter then. */
static bool is_shown(const struct wait_object *object)
{
	return object && (object->of_stack || (object->functions && !object->faults));
}

static bool object_edge(struct live_context *context, struct live_edges *edges,
			const struct edge_waiter *waiter, struct edge *edge,
			struct edge_basis *basis)
{
	const struct sample *sample = waiter->sample;
	const struct wait_object *object;
	struct wait_facts facts;
	bool known = facts_read(context, sample, &waiter->hint, false, &facts);

	object = facts.object;
	if (sample->now.state == STATE_DISK && sample->io.dev && !is_shown(object)) {
		disk_edge(&facts, sample, edge);
		return true;
	}
	if (object && object->passes_on) {
		basis->held = held_find(context, edges, waiter);
		facts = edges->held.locks[basis->held - 1].facts;
		known = edges->held.locks[basis->held - 1].known;
		object = facts.object;
	}
	if (!object)
		return known;
	if (object->edge)
		object->edge(&facts, sample, edge);
	if (edge->tid == ABSENT && edge->pid == ABSENT)
		edge->sure = SURE_NONE;
	else if (edge->tid == ABSENT)
		edge_to_process(context, &edges->peers, &edges->wakers, waiter, edge);
	if (edge->kind == EDGE_NONE && object->threads_end)
		waker_edge(context, edges, waiter, edge);
	return known || edge->sure != SURE_NONE || !object->searched;
}

/* True if a thread may sleep for a lock of the kernel. In S most calls show what they wait for, or
 * have a file with another end; the others may wait so that a signal ends it, as in
 * mutex_lock_interruptible(). */
static bool may_be_locked(struct live_context *context, const struct edge_waiter *waiter)
{
	const struct sample *sample = waiter->sample;
	const struct wait_object *object;
	const struct wait_call *call;
	struct wait_facts facts;

	if (sample->now.state != STATE_SLEEP)
		return sample->now.state == STATE_DISK;
	if (sample->thread.kthread == 1 || !sample->call.name)
		return false;
	call = wait_call_find(sample->call.name, &object);
	if (call && call->describe)
		return false;
	facts_read(context, sample, &waiter->hint, false, &facts);
	return !facts.object || facts.object->ends == EDGE_NONE;
}

bool live_edge_find(struct live_context *context, struct live_edges *edges,
		    const struct edge_waiter *waiter, struct edge *edge, struct edge_basis *basis)
{
	const struct sample *sample = waiter->sample;
	bool sleeps = sample->now.state == STATE_SLEEP || sample->now.state == STATE_DISK,
	     of_program = sample->thread.kthread != 1;
	struct wait_facts facts;

	*edge = edge_absent;
	*basis = (struct edge_basis){0};
	if (may_be_locked(context, waiter) &&
	    live_kernel_lock_edge(context, &edges->kernel_locks, waiter, edge, &basis->kernel,
				  &basis->name))
		return true;
	if (sample->now.state == STATE_RQ)
		cpu_edge(context, edges->host, waiter, edge);
	else if (sleeps && of_program &&
		 (sample->call.name ||
		  (facts_read(context, sample, &waiter->hint, false, &facts) && facts.object)))
		return object_edge(context, edges, waiter, edge, basis);
	else if (sample->now.state == STATE_DISK)
		disk_edge(NULL, sample, edge);
	/* a sleeper without a system call woke before its registers could be read */
	return sample->now.state != STATE_SLEEP || sample->thread.kthread == 1;
}

void live_edges_begin(struct live_edges *edges, int64_t scan_time_ns)
{
	const struct held_list before = edges->held_before;

	edges->scan_time_ns = scan_time_ns;
	edges->held_before = edges->held;
	edges->held = before;
	edges->held.count = 0;
	index_empty(&edges->held.slots);
	live_peers_begin(&edges->peers, scan_time_ns);
	live_kernel_locks_begin(&edges->kernel_locks);
}

static void held_done(struct held_list *list)
{
	free(list->locks);
	index_clear(&list->slots);
}

void live_edges_done(struct live_edges *edges)
{
	held_done(&edges->held);
	held_done(&edges->held_before);
	live_peers_done(&edges->peers);
	live_kernel_locks_done(&edges->kernel_locks);
	live_wakers_done(&edges->wakers);
	*edges = (struct live_edges){0};
}
