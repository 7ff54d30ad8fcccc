/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens sockets of tsnap itself in network namespaces of other processes. */
#ifndef TSNAP_WAITS_NET_NAMESPACE_H
#define TSNAP_WAITS_NET_NAMESPACE_H

#include <stdint.h>

/* The number of the thread's network namespace, from the link ns/net. 0: not known. */
uint64_t net_namespace_of(const char *root, int64_t pid, int64_t tid);

/* Opens a NETLINK_SOCK_DIAG socket in that namespace, which the caller closes; or -errno. A socket
 * stays in the namespace that it was made in. A thread is started to enter the namespace, which
 * needs CAP_SYS_ADMIN; the caller's own namespace needs neither. */
int net_namespace_diag_open(const char *root, int64_t pid, int64_t tid);

#endif
