/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live_chains.h"
#include "live_edges.h"
#include "live/live_state.h"
#include "base/memory.h"
#include "base/names.h"

#include <stdlib.h>
#include <string.h>

#define NODES_MAX 65536 /* met in one scan; chains that lead farther have no root */

/* What a node's edge was found with. */
struct chain_proof {
	uint32_t key, tid; /* of its record, as the kernel numbers it; tid 0: it has none */
	uint64_t sequence;
	struct edge_basis basis;
};

struct live_chains {
	struct thread_state records[SCAN_PART];
	struct live_edges edges;
	struct chain_nodes nodes;
	struct chain_proof *proofs; /* by place of the node */
	size_t proof_capacity;
	size_t proved; /* nodes up to here have been looked at again */
};

static struct live_chains *chains_of(struct live *live)
{
	if (!live->chains)
		live->chains = memory_get(sizeof(*live->chains));
	return live->chains;
}

void live_chains_note(struct live *live, const struct thread_state *record, size_t sample)
{
	if (live->context.wants.needs & NEEDS_CHAINS)
		chains_of(live)->records[sample] = *record;
}

/* Fills the node that was put at that place. */
static void node_fill(struct live *live, size_t place, const struct edge_asker *asker)
{
	struct live_chains *chains = live->chains;
	struct chain_node *node = &chains->nodes.nodes[place];
	const struct sample *sample = &asker->sample;
	struct edge edge;
	struct edge_basis basis;
	bool known = live_edge_find(&live->context, &chains->edges, asker, &edge, &basis);

	node->pid = sample->pid;
	node->state = sample->state;
	node->comm = sample->comm;
	node->why = sample->why;
	node->waits_on = sample->waits_on;
	node->syscall = sample->syscall;
	node->edge = edge;
	node->unknown = !known && edge.sure == SURE_NONE;
	chains->proofs = memory_grow(chains->proofs, &chains->proof_capacity, chains->nodes.count,
				     sizeof(*chains->proofs));
	chains->proofs[place] = (struct chain_proof){
		.key = asker->record.key,
		.tid = asker->record.sched.tid,
		.sequence = asker->record.sched.sequence_done,
		.basis = basis,
	};
}

/* The same of a thread as it is now. */
static void node_fill_now(struct live *live, size_t place, int64_t pid)
{
	struct chain_nodes *nodes = &live->chains->nodes;
	struct edge_asker asker;

	if (live_edge_asker(&live->context, nodes->nodes[place].tid, pid, &asker)) {
		node_fill(live, place, &asker);
		return;
	}
	asker = (struct edge_asker){.sample = sample_absent};
	node_fill(live, place, &asker);
	nodes->nodes[place].unknown = true;
}

/* Meets those that edges of nodes lead to, until nobody is new. */
static void blockers_meet(struct live *live, size_t from)
{
	struct chain_nodes *nodes = &live->chains->nodes;

	for (size_t i = from; i < nodes->count && nodes->count < NODES_MAX; i++) {
		const struct edge edge = nodes->nodes[i].edge;
		size_t place;
		bool added;

		if (!edge_leads_on(&edge) || !(live->context.wants.needs & NEED_CHAIN))
			continue;
		place = chain_nodes_put(nodes, edge.tid, &added);
		if (added)
			node_fill_now(live, place, edge.pid);
	}
}

/* Whether the thread has slept since its edge was found. */
static bool still_asleep(struct live *live, const struct chain_proof *proof)
{
	struct thread_state now;

	return !thread_table_get(&live->context.kernel.table, proof->key, &now) &&
	       now.sched.tid == proof->tid && now.sched.sequence_begun == proof->sequence &&
	       now.sched.sequence_done == proof->sequence && !now.sched.on_cpu &&
	       now.wake.wake_ns <= now.sched.out_ns;
}

static bool is_asleep(int64_t state)
{
	return state == DOING_SLEEP || state == DOING_DISK;
}

/* An edge whose wait has ended meanwhile may lead to anybody. So may one to a thread that waited
 * for a mutex: it may have got it only since then. */
static void nodes_prove(struct live *live)
{
	struct live_chains *chains = live->chains;

	for (; chains->proved < chains->nodes.count; chains->proved++) {
		const struct chain_proof *proof = &chains->proofs[chains->proved];
		struct chain_node *node = &chains->nodes.nodes[chains->proved];

		if (!edge_leads_on(&node->edge) && node->edge.sure != SURE_PROCESS &&
		    !edge_basis_moves(&proof->basis))
			continue;
		if ((!proof->tid || still_asleep(live, proof)) &&
		    live_edge_holds(&live->context, &chains->edges, node->tid, &proof->basis))
			continue;
		node->edge = edge_absent;
		node->unknown = true;
	}
}

/* Puts the sample's thread, as the sample tells of it, unless a chain of this scan has led to it
 * before. */
static void sample_meet(struct live *live, size_t at)
{
	struct live_chains *chains = live->chains;
	struct edge_asker asker;
	bool added;
	size_t place = chain_nodes_put(&chains->nodes, live->samples[at].tid, &added);

	if (!added)
		return;
	live_edge_asker_of(&live->context, &chains->records[at], &live->samples[at], &asker);
	/* it has woken since the moment: others wait for what it does now */
	if (is_asleep(asker.sample.state) && asker.record.sched.tid &&
	    !record_still(&live->context.kernel.table, &asker.record))
		node_fill_now(live, place, asker.sample.pid);
	else
		node_fill(live, place, &asker);
}

/* A thread that was met before its sample was made may have done something else by then than the
 * sample tells. */
static void sample_tell(struct live *live, struct sample *sample)
{
	struct chain_nodes *nodes = &live->chains->nodes;
	const uint64_t *place = index_find(&nodes->by_tid, (uint64_t)sample->tid);

	if (place && nodes->nodes[*place - 1].state == sample->state)
		chain_fill(nodes, *place - 1, live->context.wants.needs, sample);
}

void live_chains_tell(struct live *live)
{
	struct live_chains *chains;
	size_t from;

	if (!(live->context.wants.needs & NEEDS_CHAINS) || !live->part.count)
		return;
	chains = chains_of(live);
	if (chains->edges.moment_ns != live->context.now.moment.now_ns) {
		live_edges_begin(&chains->edges, live->context.now.moment.now_ns);
		chain_nodes_clear(&chains->nodes);
		chains->proved = 0;
	}
	from = chains->nodes.count;
	for (size_t i = 0; i < live->part.count; i++)
		if (live->samples[i].tid != ABSENT)
			sample_meet(live, i);
	blockers_meet(live, from);
	nodes_prove(live);
	for (size_t i = 0; i < live->part.count; i++)
		if (live->samples[i].tid != ABSENT)
			sample_tell(live, &live->samples[i]);
}

void live_chains_free(struct live_chains *chains)
{
	if (!chains)
		return;
	live_edges_done(&chains->edges);
	chain_nodes_done(&chains->nodes);
	free(chains->proofs);
	free(chains);
}
