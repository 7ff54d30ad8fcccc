/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tells whether an answer is due on a TCP connection: one question to the kernel about one
 * connection (inet_diag, 3.3+), some microseconds. The tables of sock_diag.h do not carry it, as it
 * would make them three times as large.
 */
#ifndef TSNAP_WAITS_TCP_REQUEST_H
#define TSNAP_WAITS_TCP_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

struct diag_record;

/* True if the process on this side of the connection has sent data after the last data that it got,
 * or the connection is being made. fd: a NETLINK_SOCK_DIAG socket of the connection's network
 * namespace, with no other answer under way. record: the connection as a table has it; the answer
 * is believed only if it is of the same inode. False also where the kernel does not tell. */
bool tcp_request_is_out(int fd, const struct diag_record *record);

/* True if this side got data after the last that it sent. The kernel counts in ticks: within one it
 * may also have been the other way round, and true is told. Else as tcp_request_is_out(). */
bool tcp_request_is_in(int fd, const struct diag_record *record);

/* tcp_request_is_out() from an answer of the kernel; pure. Anything cut or strange gives false. */
bool tcp_request_parse(const void *answer, size_t length, const struct diag_record *record);

#endif
