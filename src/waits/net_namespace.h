/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Sockets of this program's own in the network namespaces of others. */
#ifndef TSNAP_WAITS_NET_NAMESPACE_H
#define TSNAP_WAITS_NET_NAMESPACE_H

#include <stdint.h>

/* The number of the thread's network namespace, as the link ns/net has it. 0: not known. */
uint64_t net_namespace_of(const char *root, int64_t pid, int64_t tid);

/* A NETLINK_SOCK_DIAG socket in that namespace, to close: a socket stays in the one that it was
 * made in. A thread is started to enter it, which needs CAP_SYS_ADMIN; the caller's own needs
 * neither. -errno. */
int net_namespace_diag_open(const char *root, int64_t pid, int64_t tid);

#endif
