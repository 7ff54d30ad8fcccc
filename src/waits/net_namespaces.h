/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The network namespaces in which sockets are looked up, and the tables of their sockets
 * (waits/sock_diag), opened and read when somebody asks, with little time in each scan.
 */
#ifndef TSNAP_WAITS_NET_NAMESPACES_H
#define TSNAP_WAITS_NET_NAMESPACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "waits/sock_diag.h"

#define NET_NAMESPACES_MAX 128

struct net_namespace {
	uint64_t number; /* number in the link ns/net */
	int64_t used_ns;
	struct diag_table *tables[DIAG_GROUP_COUNT]; /* NULL: nobody has asked */
	int single_fd; /* for questions about one TCP connection; negative: not open */
};

struct net_namespaces {
	const char *root; /* path of /proc; transient */
	struct net_namespace *namespaces[NET_NAMESPACES_MAX];
	size_t count;
	int64_t scan_ns, left_ns; /* the present scan, and the time that reading has left in it */
	int64_t refused_ns;	  /* a namespace could not be entered */
	int err;		  /* why the kernel tells nothing, -errno; 0 if it does */
};

/* The table of a thread's namespace; number: as net_namespace_of() tells it. NULL: it can't be
 * entered, or there are too many. */
struct diag_table *net_namespaces_table(struct net_namespaces *namespaces, uint64_t number,
					enum diag_group group, int64_t pid, int64_t tid,
					int64_t now_ns);
/* NULL: it is not open. */
const struct net_namespace *net_namespaces_find(const struct net_namespaces *namespaces,
						uint64_t number);

/* Nanoseconds that this scan may still spend; what was spent is taken off. */
int64_t net_namespaces_left(struct net_namespaces *namespaces, int64_t now_ns);
void net_namespaces_spent(struct net_namespaces *namespaces, int64_t since_ns);

/* Reads the table so that it is as of that time, as far as this scan has time for it. */
bool net_namespaces_refresh(struct net_namespaces *namespaces, struct diag_table *table,
			    int64_t as_of_ns, int64_t now_ns);

void net_namespaces_sweep(struct net_namespaces *namespaces, int64_t now_ns, int64_t idle_ns);
void net_namespaces_done(struct net_namespaces *namespaces);

#endif
