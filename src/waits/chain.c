/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "waits/chain.h"
#include "base/memory.h"
#include "base/names.h"
#include "base/text.h"

#include <stdlib.h>

const char *const edge_sure_names[SURE_COUNT] = {
	[SURE_PROCESS] = "process",
	[SURE_LIKELY] = "likely",
	[SURE_CERTAIN] = "certain",
};

const struct edge edge_absent = {.tid = ABSENT, .pid = ABSENT, .inode = ABSENT};

void chain_nodes_clear(struct chain_nodes *nodes)
{
	nodes->count = 0;
	index_empty(&nodes->by_tid);
}

void chain_nodes_done(struct chain_nodes *nodes)
{
	index_clear(&nodes->by_tid);
	free(nodes->nodes);
	*nodes = (struct chain_nodes){0};
}

size_t chain_nodes_put(struct chain_nodes *nodes, int64_t tid, bool *added)
{
	uint64_t *slot = index_put(&nodes->by_tid, (uint64_t)tid, added);

	if (!*added)
		return *slot - 1;
	nodes->nodes = memory_grow(nodes->nodes, &nodes->capacity, nodes->count + 1,
				   sizeof(*nodes->nodes));
	nodes->nodes[nodes->count] = (struct chain_node){
		.tid = tid, .pid = ABSENT, .state = ABSENT, .edge = edge_absent};
	*slot = ++nodes->count;
	return *slot - 1;
}

bool edge_leads_on(const struct edge *edge)
{
	return edge->kind != EDGE_NONE && !(edge_kinds[edge->kind].traits & ENDS_CHAIN) &&
	       edge->tid != ABSENT;
}

/* Makes the cycle's thread with the lowest id the root, so that all threads in the cycle have the
 * same root. */
static void cycle_find(const struct chain_nodes *nodes, struct chain *chain)
{
	chain->deadlock = true;
	for (size_t i = chain->cycle; i < chain->count; i++) {
		struct chain_node *node = &nodes->nodes[chain->path[i]];

		chain->deadlock &= node->edge.sure == SURE_CERTAIN && !node->edge.timed;
		if (!chain->root || node->tid < chain->root->tid)
			chain->root = node;
	}
}

static size_t path_find(const struct chain *chain, size_t slot)
{
	size_t i = 0;

	while (i < chain->count && chain->path[i] != slot)
		i++;
	return i;
}

void chain_walk(struct chain_nodes *nodes, size_t from, struct chain *chain)
{
	size_t slot = from;

	chain->count = 0;
	chain->root = NULL;
	chain->deadlock = false;
	nodes->walks++;
	for (;;) {
		struct chain_node *node = &nodes->nodes[slot];
		const uint64_t *next;

		chain->path[chain->count++] = slot;
		chain->cycle = chain->count;
		node->walk = nodes->walks;
		if (node->unknown)
			return;
		if (!edge_leads_on(&node->edge)) {
			chain->root = node;
			return;
		}
		next = index_find(&nodes->by_tid, (uint64_t)node->edge.tid);
		if (!next)
			return;
		slot = *next - 1;
		if (nodes->nodes[slot].walk == nodes->walks) {
			chain->cycle = path_find(chain, slot);
			cycle_find(nodes, chain);
			return;
		}
		if (chain->count > CHAIN_LINKS_MAX)
			return;
	}
}

static void text_add_name(struct text *text, const char *name)
{
	text_add_string(text, name ? name : "?");
}

/* True for a link that texts mark, as it is only likely. */
static bool is_in_doubt(const struct edge *edge)
{
	return edge_kinds[edge->kind].traits & MARKS_DOUBT && edge->sure == SURE_LIKELY;
}

static void edge_add(struct text *text, const struct edge *edge)
{
	text_add_string(text, " ");
	text_add_string(text, edge_kinds[edge->kind].name);
	if (is_in_doubt(edge))
		text_add_string(text, EDGE_DOUBT);
	text_add_string(text, "> ");
}

/* Writes "php-fpm socket> mariadbd mutex> mariadbd io> sda". */
static void chain_describe(const struct chain_nodes *nodes, const struct chain *chain,
			   struct text *text)
{
	const struct chain_node *node = NULL;
	bool cycle = chain->cycle < chain->count;

	for (size_t i = 0; i < chain->count; i++) {
		if (i == CHAIN_TOLD_MAX / 2 && chain->count > CHAIN_TOLD_MAX + 1) {
			text_add_string(text, "... ");
			i = chain->count - CHAIN_TOLD_MAX / 2;
		}
		node = &nodes->nodes[chain->path[i]];
		text_add_name(text, node->comm);
		if (i + 1 < chain->count || cycle || edge_leads_on(&node->edge))
			edge_add(text, &node->edge);
	}
	if (cycle) {
		text_add_name(text, nodes->nodes[chain->path[chain->cycle]].comm);
		text_add_string(text, chain->deadlock ? " DEADLOCK" : " cycle");
	} else if (!chain->root) {
		text_add_string(text, edge_leads_on(&node->edge) ? "..." : " ...");
	} else if (node->edge.thing) {
		edge_add(text, &node->edge);
		text_add_string(text, node->edge.thing);
	}
}

/* Makes the root's names transient for the root's columns: once for all chains that end there. */
static void root_lend(struct chain_node *root)
{
	if (root->transient)
		return;
	/* a thread on a CPU is no waits_on */
	if (edge_kinds[root->edge.kind].traits & ENDS_CHAIN && !root->edge.oncpu)
		root->waits_on = root->edge.thing;
	root->comm = name_transient_string(root->comm);
	root->syscall = name_transient_string(root->syscall);
	root->waits_on = name_transient_string(root->waits_on);
	root->transient = true;
}

/* The root's name: "worker ?" if a link on the way to it is in doubt. */
static const char *root_name(const struct chain_nodes *nodes, const struct chain *chain)
{
	static struct text text;

	for (size_t i = 0; i < chain->count && chain->root->comm; i++) {
		if (!is_in_doubt(&nodes->nodes[chain->path[i]].edge))
			continue;
		text_clear(&text);
		text_add_format(&text, "%s " EDGE_DOUBT, chain->root->comm);
		return name_transient(text_string(&text), text.length);
	}
	return chain->root->comm;
}

/* Fills the root's columns. If no thread of the root's process is known, only its name and pid. */
static void root_fill(const struct chain_nodes *nodes, const struct chain *chain,
		      struct sample *sample)
{
	struct chain_node *root = chain->root;

	if (!root)
		return;
	if (root->edge.sure == SURE_PROCESS) {
		sample->chain.root.comm = name_transient_string(root->edge.thing);
		sample->chain.root.pid = root->edge.pid;
		return;
	}
	root_lend(root);
	sample->chain.root.comm = root_name(nodes, chain);
	sample->chain.root.tid = root->tid;
	sample->chain.root.pid = root->pid;
	sample->chain.root.state = root->state;
	sample->chain.root.syscall = root->syscall;
	sample->chain.root.why = root->why;
	sample->chain.root.waits_on = root->waits_on;
	sample->chain.root.query = root->query;
	if (chain->cycle < chain->count)
		sample->chain.root.why = chain->deadlock ? ROOT_DEADLOCK : ROOT_CYCLE;
}

void chain_fill(struct chain_nodes *nodes, size_t from, uint64_t needs, struct sample *sample,
		struct chain *chain)
{
	static struct text text;
	const struct chain_node *node = &nodes->nodes[from];
	const struct edge *edge = &node->edge;

	chain->count = 0;
	chain->root = NULL;
	if (node->unknown)
		return;
	sample->blocker.tid = edge->tid;
	sample->blocker.pid = edge->pid;
	if (edge->kind != EDGE_NONE)
		sample->blocker.kind = edge_kinds[edge->kind].name;
	if (edge->sure != SURE_NONE)
		sample->blocker.sure = edge_sure_names[edge->sure];
	if (edge->oncpu) {
		sample->blocker.oncpu_comm = name_transient_string(edge->oncpu);
		sample->blocker.oncpu_cgroup = edge->group;
		sample->blocker.neighbour = edge->neighbour;
	}
	if (!(needs & NEED_CHAIN))
		return;
	chain_walk(nodes, from, chain);
	text_clear(&text);
	chain_describe(nodes, chain, &text);
	sample->chain.text = name_transient(text_string(&text), text.length);
	sample->chain.depth = (int64_t)chain->count - 1;
	if (chain->root && chain->root->edge.sure == SURE_PROCESS)
		sample->chain.depth++;
	root_fill(nodes, chain, sample);
}
