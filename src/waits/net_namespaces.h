/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Network namespaces in which sockets are looked up, and the tables of their sockets
 * (waits/sock_diag), opened and read on demand, with little time in each scan.
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
	struct diag_table *tables[DIAG_GROUP_COUNT]; /* NULL: not requested yet */
	int single_fd; /* socket for queries about one TCP connection; negative: not open */
};

/* The number of the thread's network namespace, from the link ns/net. 0: not known. */
uint64_t net_namespace_of(const char *root, int64_t pid, int64_t tid);
/* The table of a thread's namespace, whose number is that of net_namespace_of(). NULL: the
 * namespace can't be entered, or there are too many. */
struct diag_table *net_namespaces_table(const char *root, uint64_t number, enum diag_group group,
					int64_t pid, int64_t tid, int64_t now_ns);
/* The namespace of that number. NULL: it is not open. */
struct net_namespace *net_namespaces_find(uint64_t number);
/* The namespaces that are open, from 0 on; NULL: there are no more. */
struct net_namespace *net_namespaces_at(size_t index);

/* Nanoseconds that this scan may still spend, and the deduction of the time spent since
 * since_ns. */
int64_t net_namespaces_left(int64_t now_ns);
void net_namespaces_spent(int64_t since_ns);

/* Reads the table until it is as of as_of_ns or later, as far as this scan has time for it. False:
 * it is older. */
bool net_namespaces_refresh(struct diag_table *table, int64_t as_of_ns, int64_t now_ns);

void net_namespaces_sweep(int64_t now_ns, int64_t idle_ns);
void net_namespaces_done(void);
/* -errno of the kernel's refusal to list sockets; 0: none. */
int net_namespaces_error(void);

#endif
