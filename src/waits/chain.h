/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Wait chains: the blocker that a thread waits for, the blocker of that blocker, and so on to the
 * last thread, the root. A node is a thread, an edge leads from a thread to its blocker;
 * live_chains.c finds both on the host, tests make them up. Pure: nothing here reads the host.
 *
 * A node has one edge at most, so a walk from any node either ends or comes to a cycle.
 */
#ifndef TSNAP_WAITS_CHAIN_H
#define TSNAP_WAITS_CHAIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "sample/edge_kind.h"
#include "sample/sample.h"

/* Limit of links; a longer chain has no root. */
#define CHAIN_LINKS_MAX 64
/* Limit of threads in the text; of a longer chain it has the first and the last half of that
 * number. */
#define CHAIN_TOLD_MAX 16

enum edge_sure {
	SURE_NONE,    /* no blocker is known */
	SURE_PROCESS, /* the process is known, not which of its threads */
	SURE_LIKELY,
	SURE_CERTAIN, /* the kernel or the lock word says so */
	SURE_COUNT,
};

/* Names of column blocker_sure; NULL: none. */
extern const char *const edge_sure_names[SURE_COUNT];

struct edge {
	enum edge_kind kind;
	enum edge_sure sure;
	int64_t tid, pid;  /* the blocker; ABSENT: not known */
	const char *thing; /* name of the device, of the thread on the CPU, of the group with the
			    * quota, or of the blocker's process if only that is known; NULL:
			    * none */
	const char *oncpu; /* name of the thread on the CPU that is waited for; NULL: it is none */
	const char *group; /* its control group; NULL: not known */
	const char *neighbour; /* the same, if the waiter is in another one; NULL: not known */
	bool to_end;	       /* the blocker has the other end of what is waited on */
	int64_t inode;	       /* inode of that end; ABSENT: not known */
	bool timed;	       /* the wait ends by itself at a time */
	bool firm; /* it stays so while its thread and the blocker sleep; or there will be none */
};

extern const struct edge edge_absent;

struct chain_node {
	int64_t tid, pid, state; /* enum thread_state_kind */
	const char *comm, *why, *waits_on, *syscall;
	const char *query; /* transient */
	struct edge edge;
	bool unknown;	/* the thread ran in the search for its edge, or the search goes on */
	bool transient; /* names are transient, as the root's columns need them */
	uint64_t walk;
};

/* The threads of a scan. Zeroed is empty. */
struct chain_nodes {
	struct chain_node *nodes;
	size_t count, capacity;
	struct index by_tid; /* tid to index in nodes, plus one */
	uint64_t walks;
};

/* A walk from a node to the root. */
struct chain {
	size_t path[CHAIN_LINKS_MAX + 1]; /* indexes in nodes; the first is the thread's */
	size_t count;
	struct chain_node *root; /* NULL: not known */
	size_t cycle;  /* index in path of the node that the last node waits for; count: no cycle */
	bool deadlock; /* a cycle in which all edges are certain and none ends by itself */
};

void chain_nodes_clear(struct chain_nodes *nodes);
void chain_nodes_done(struct chain_nodes *nodes);
/* Index of the thread's node; a missing node is added with all fields absent (*added). */
size_t chain_nodes_put(struct chain_nodes *nodes, int64_t tid, bool *added);

/* True if a chain goes on at the edge's blocker. */
bool edge_leads_on(const struct edge *edge);

void chain_walk(struct chain_nodes *nodes, size_t from, struct chain *chain);
/* Fills blocker_tid to blocker_sure, and with NEED_CHAIN chain to depth. Names are transient, or
 * constants in columns that have no others. Unknown fields become absent. Changes the nodes: a root
 * has transient names from then on. chain: the walk, which is empty without NEED_CHAIN, and if the
 * thread's edge is not known. */
void chain_fill(struct chain_nodes *nodes, size_t from, uint64_t needs, struct sample *sample,
		struct chain *chain);

#endif
