/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/chains/live_chains.h"
#include "live/chains/live_edge_time.h"
#include "live/chains/live_edges.h"
#include "live/context/live_context.h"
#include "sample/source.h"
#include "sample/waits_on.h"
#include "base/memory.h"
#include "base/names.h"

#include <stdlib.h>
#include <string.h>

#define NODES_MAX 65536 /* threads met in one scan; chains that lead farther have no root */

/* Record and basis that the edge of a node was found with. */
struct chain_proof {
	uint32_t key, tid; /* ids of its record, as the kernel numbers it; tid 0: it has none */
	uint64_t sequence;
	struct edge_basis basis;
	const char *lock; /* name of the kernel's lock that it waits for, transient; NULL: none */
	int64_t uid;	  /* user whose time its edge took */
};

struct live_chains {
	struct live_context *context;
	struct thread_state records[SCAN_BATCH];
	struct chain_sleepers sleepers[SCAN_BATCH];
	struct live_edges edges;
	struct live_edge_time time;
	struct chain_nodes nodes;
	struct chain_proof *proofs; /* indexed by slot of the node */
	size_t proof_capacity;
	size_t validated; /* nodes up to here have been looked at again */
};

static struct live_chains *chains_of(struct live_chains **chains, struct live_context *context)
{
	if (!*chains) {
		*chains = memory_get(sizeof(**chains));
		(*chains)->context = context;
	}
	return *chains;
}

void live_chains_note(struct live_chains **chains, struct live_context *context,
		      const struct thread_state *record, size_t sample)
{
	if (context->wants.needs & NEEDS_CHAINS)
		chains_of(chains, context)->records[sample] = *record;
}

/* What a thread waits for that leads to no thread of this host: of a TCP connection, also whose
 * turn it is there. */
static const char *waits_on_far(struct live_chains *chains, const struct sample *sample)
{
	static struct text text;
	const char *words = waits_net_words(lookup_waits(chains->context->lookup), sample,
					    chains->context->now.scan_time.now_ns);

	if (!words || !sample->wait.on)
		return sample->wait.on;
	text_clear(&text);
	text_add_format(&text, "%s" WAITS_ON_NET "%s", sample->wait.on, words);
	return name_transient(text_string(&text), text.length);
}

static const char *lock_name_of(struct live_chains *chains, const struct edge_waiter *waiter,
				const struct lock_name *name)
{
	static struct text text;

	if (!name->field)
		return NULL;
	text_clear(&text);
	live_kernel_lock_name(chains->context, waiter, name, &text);
	return name_transient(text_string(&text), text.length);
}

/* Fills the node that was put at that slot. */
static void node_fill(struct live_chains *chains, size_t slot, const struct edge_waiter *waiter)
{
	struct chain_node *node = &chains->nodes.nodes[slot];
	const struct sample *sample = waiter->sample;
	struct edge edge;
	struct edge_basis basis;
	bool looked = chains->edges.kernel_locks.looked;
	bool known = live_edge_find(chains->context, &chains->edges, waiter, &edge, &basis);

	if (chains->edges.kernel_locks.looked != looked) /* it has loaded programs and symbols */
		live_edge_time_resume(&chains->time);
	node->pid = sample->thread.pid;
	node->state = sample->now.state;
	node->comm = sample->thread.comm;
	node->why = sample->wait.why;
	node->waits_on = sample->wait.on;
	if (known && edge.sure == SURE_NONE && chains->context->wants.needs & NEED_CHAIN)
		node->waits_on = waits_on_far(chains, sample);
	node->syscall = sample->call.name;
	node->query = sample->app.query;
	node->edge = edge;
	node->unknown = !known && edge.sure == SURE_NONE;
	chains->proofs = memory_grow(chains->proofs, &chains->proof_capacity, chains->nodes.count,
				     sizeof(*chains->proofs));
	chains->proofs[slot] = (struct chain_proof){
		.key = waiter->record->key,
		.tid = waiter->record->sched.tid,
		.sequence = waiter->record->sched.sequence_done,
		.basis = basis,
		.lock = lock_name_of(chains, waiter, &basis.name),
		.uid = live_edge_time_user(&chains->time, sample->thread.pid),
	};
	live_edge_time_take(&chains->time, chains->proofs[slot].uid);
}

/* Fills a node with its thread as it is now. */
static void node_fill_now(struct live_chains *chains, size_t slot, int64_t pid)
{
	struct chain_nodes *nodes = &chains->nodes;
	struct edge_looked looked;
	bool there = live_edge_look(chains->context, nodes->nodes[slot].tid, pid, &looked);

	if (!there) {
		looked.record = (struct thread_state){0};
		looked.sample = *sample_absent();
	}
	node_fill(chains, slot, &looked.waiter);
	nodes->nodes[slot].unknown |= !there;
}

/* Meets threads that edges of nodes lead to, until none is new, or time is up. */
static void blockers_meet(struct live_chains *chains, size_t from)
{
	struct chain_nodes *nodes = &chains->nodes;

	for (size_t i = from; i < nodes->count && nodes->count < NODES_MAX; i++) {
		const struct edge edge = nodes->nodes[i].edge;
		size_t slot;
		bool added;

		if (!edge_leads_on(&edge) || !(chains->context->wants.needs & NEED_CHAIN))
			continue;
		if (!index_find(&nodes->by_tid, (uint64_t)edge.tid) &&
		    !live_edge_time_left(&chains->time, chains->proofs[i].uid))
			continue;
		slot = chain_nodes_put(nodes, edge.tid, &added);
		if (added)
			node_fill_now(chains, slot, edge.pid);
	}
}

static bool is_asleep(int64_t state)
{
	return state == STATE_SLEEP || state == STATE_DISK;
}

/* Drops edges that may be wrong. An edge of a wait that has ended meanwhile may lead to any thread.
 * So may one to a thread that waited for a mutex: it may have got it only since then. */
static void nodes_validate(struct live_chains *chains)
{
	struct thread_table *table = &chains->context->kernel.table;

	live_kernel_locks_check(&chains->edges.kernel_locks);
	for (; chains->validated < chains->nodes.count; chains->validated++) {
		const struct chain_proof *proof = &chains->proofs[chains->validated];
		struct chain_node *node = &chains->nodes.nodes[chains->validated];

		if (!edge_leads_on(&node->edge) && node->edge.sure != SURE_PROCESS &&
		    !edge_basis_moves(&proof->basis))
			continue;
		if ((!proof->tid ||
		     thread_table_is_asleep(table, proof->key, proof->tid, proof->sequence)) &&
		    live_edge_holds(chains->context, &chains->edges, node->tid, &proof->basis,
				    proof->tid != 0)) {
			live_edge_doubt(chains->context, &proof->basis, &node->edge);
			continue;
		}
		node->edge = edge_absent;
		node->unknown = true;
	}
}

/* Puts the sample's thread, as the sample shows it, unless a chain of this scan has led to it
 * before, or there is no time for it. */
static void sample_meet(struct live_chains *chains, const struct sample *sample, size_t at)
{
	struct edge_waiter waiter;
	bool added;
	size_t slot;

	if (index_find(&chains->nodes.by_tid, (uint64_t)sample->thread.tid) ||
	    !live_edge_time_left(&chains->time,
				 live_edge_time_user(&chains->time, sample->thread.pid)))
		return;
	slot = chain_nodes_put(&chains->nodes, sample->thread.tid, &added);
	live_edge_waiter_of(chains->context, &chains->records[at], sample, &waiter);
	/* the thread has woken since the scan time: others wait for what it does now */
	if (is_asleep(waiter.sample->now.state) && waiter.record->sched.tid &&
	    !record_still(&chains->context->kernel.table, waiter.record))
		node_fill_now(chains, slot, waiter.sample->thread.pid);
	else
		node_fill(chains, slot, &waiter);
}

static void sleepers_fill(const struct live_chains *chains, const struct chain *chain,
			  struct chain_sleepers *sleepers)
{
	const struct edge *last = chain->root ? &chain->root->edge : NULL;

	if (!last || chain->count - 1 > CHAIN_SLEEPERS_MAX)
		return;
	if (last->sure == SURE_PROCESS)
		sleepers->pid = last->pid;
	else if (last->kind == EDGE_NONE && !last->firm) /* perhaps while a lock passes on */
		sleepers->pid = chain->root->pid;
	sleepers->firm = true;
	for (size_t i = 0; i < chain->count; i++) {
		const struct chain_proof *proof = &chains->proofs[chain->path[i]];

		sleepers->firm &= chains->nodes.nodes[chain->path[i]].edge.firm;
		if (!i)
			continue;
		if (!proof->tid || !is_asleep(chains->nodes.nodes[chain->path[i]].state))
			return;
		sleepers->sleepers[sleepers->count++] =
			(struct chain_sleeper){proof->key, proof->tid, proof->sequence};
	}
	sleepers->known = true;
}

/* What a thread waits for whose lock of the kernel has a name: "mmap_lock of 4711 java held by 4811
 * java (D, mmap)", or "held by 3 readers", of which the edge leads to the last one that came. */
static const char *waits_on_lock(const struct live_chains *chains, size_t slot, const char *lock)
{
	const struct chain_nodes *nodes = &chains->nodes;
	const struct chain_proof *proof = &chains->proofs[slot];
	const struct edge *edge = &nodes->nodes[slot].edge;
	const uint64_t *at =
		edge->tid == ABSENT ? NULL : index_find(&nodes->by_tid, (uint64_t)edge->tid);
	const struct chain_node *holder = at ? &nodes->nodes[*at - 1] : NULL;
	const struct state_row *state = holder ? state_row(holder->state) : NULL;
	static struct text text;

	text_clear(&text);
	text_add_string(&text, lock);
	if (proof->basis.kernel.readers > 1) {
		text_add_format(&text, WAITS_ON_HOLDER "%u readers", proof->basis.kernel.readers);
	} else if (edge->tid != ABSENT) {
		text_add_format(&text, WAITS_ON_HOLDER "%lld", (long long)edge->tid);
		if (holder && holder->comm)
			text_add_format(&text, " %s", holder->comm);
		if (state)
			text_add_format(&text, " (%s%s%s)", state->name,
					holder->syscall ? ", " : "",
					holder->syscall ? holder->syscall : "");
	}
	return name_transient(text_string(&text), text.length);
}

/* The name of the kernel's lock that a thread waits for: the lock's own, or what the function that
 * waits calls it; NULL: it waits for none, or that has no name. */
static const char *name_of_lock(const struct chain_proof *proof, const char *waits_on)
{
	const size_t end = strlen(WAITS_ON_MUTEX), length = waits_on ? strlen(waits_on) : 0;

	if (proof->lock || !proof->basis.kernel.blocker || length < end ||
	    strcmp(waits_on + length - end, WAITS_ON_MUTEX) != 0)
		return proof->lock;
	return waits_on;
}

/* Fills a sample's chain, if its node has the same state: a thread that was met before its sample
 * was made may have done something else by then than the sample shows. */
static void sample_fill(struct live_chains *chains, struct sample *sample,
			struct chain_sleepers *sleepers)
{
	struct chain_nodes *nodes = &chains->nodes;
	const uint64_t *slot = index_find(&nodes->by_tid, (uint64_t)sample->thread.tid);
	struct chain chain;
	const char *lock;

	*sleepers = (struct chain_sleepers){0};
	if (!slot || nodes->nodes[*slot - 1].state != sample->now.state)
		return;
	lock = name_of_lock(&chains->proofs[*slot - 1], sample->wait.on);
	if (lock && !(waits_on_traits(sample->wait.on) & WAITS_FOR_THAW))
		sample->wait.on = waits_on_lock(chains, *slot - 1, lock);
	chain_fill(nodes, *slot - 1, chains->context->wants.needs, sample, &chain);
	sleepers_fill(chains, &chain, sleepers);
}

void live_chains_fill(struct live_chains **all, struct live_context *context,
		      struct live_host *host, struct sample *samples, size_t count)
{
	struct live_chains *chains;
	size_t from;

	if (!(context->wants.needs & NEEDS_CHAINS) || !count)
		return;
	chains = chains_of(all, context);
	chains->edges.host = host;
	if (chains->edges.scan_time_ns != context->now.scan_time.now_ns) {
		live_edges_begin(&chains->edges, context->now.scan_time.now_ns);
		live_edge_time_begin(&chains->time, context->now.scan_time.now_ns,
				     context->period_ns);
		chain_nodes_clear(&chains->nodes);
		chains->validated = 0;
	}
	from = chains->nodes.count;
	live_edge_time_resume(&chains->time);
	for (size_t i = 0; i < count; i++)
		if (samples[i].thread.tid != ABSENT)
			sample_meet(chains, &samples[i], i);
	blockers_meet(chains, from);
	nodes_validate(chains);
	for (size_t i = 0; i < count; i++)
		if (samples[i].thread.tid != ABSENT)
			sample_fill(chains, &samples[i], &chains->sleepers[i]);
}

const struct chain_sleepers *live_chains_sleepers(const struct live_chains *chains, size_t sample)
{
	return &chains->sleepers[sample];
}

bool chain_sleepers_sleep(const struct chain_sleepers *sleepers, struct live_context *context)
{
	for (uint32_t i = 0; i < sleepers->count; i++) {
		const struct chain_sleeper *sleeper = &sleepers->sleepers[i];

		if (!thread_table_is_asleep(&context->kernel.table, sleeper->key, sleeper->tid,
					    sleeper->sequence))
			return false;
	}
	return true;
}

void live_chains_describe(const struct live_chains *chains, struct source_status *status)
{
	if (chains)
		source_status_miss(status,
				   "waits whose chains were not followed (those of one user may "
				   "take 3/8 of the time between scans, or 20 ms: use a lower -F, "
				   "or -p)",
				   chains->time.refused_count);
}

void live_chains_free(struct live_chains *chains)
{
	if (!chains)
		return;
	live_edges_done(&chains->edges);
	live_edge_time_done(&chains->time);
	chain_nodes_done(&chains->nodes);
	free(chains->proofs);
	free(chains);
}
