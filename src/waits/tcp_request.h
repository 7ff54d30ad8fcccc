/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds whether an answer is due on a TCP connection: one query to the kernel about one connection
 * (inet_diag, 3.3+), some microseconds. The tables of sock_diag.h do not have this, as it would
 * make them three times as large.
 */
#ifndef TSNAP_WAITS_TCP_REQUEST_H
#define TSNAP_WAITS_TCP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag_record;

#define REQUEST_NONE (-1)

/* Milliseconds since the process on this side of the connection sent data, if it has received none
 * after that; 0 if the connection is being made. Else, or if the kernel does not know,
 * REQUEST_NONE. fd: a NETLINK_SOCK_DIAG socket of the connection's network namespace, with no other
 * answer under way. record: the connection as a table has it; the answer is used only if it has the
 * same inode. */
int64_t tcp_request_age_ms(int fd, const struct diag_record *record);

/* True if this side has received data after the last data that it sent. The kernel's times have the
 * resolution of its tick: if both are of one tick, the order is not known, and the result is true.
 * Otherwise like tcp_request_age_ms(). */
bool tcp_request_is_in(int fd, const struct diag_record *record);

/* The result of tcp_request_age_ms() for an answer of the kernel. REQUEST_NONE for a truncated or
 * unexpected answer. Pure. */
int64_t tcp_request_parse(const void *answer, size_t length, const struct diag_record *record);

#endif
