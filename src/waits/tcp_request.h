/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds whether an answer is due on a TCP connection: one query to the kernel about one connection
 * (inet_diag, 3.3+), some microseconds. The tables of sock_diag.h do not have this, as it would
 * make them three times as large.
 */
#ifndef TSNAP_WAITS_TCP_REQUEST_H
#define TSNAP_WAITS_TCP_REQUEST_H

#include <linux/inet_diag.h>
#include <linux/tcp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct diag_record;

/* What the kernel says of one TCP socket. */
struct tcp_answer {
	struct inet_diag_msg message;
	struct tcp_info info; /* members that this kernel does not have are 0 */
	size_t info_bytes;    /* size of the kernel's tcp_info; 0: none, as for a listening socket
			       */
};

/* True if the kernel's tcp_info has that member. */
#define TCP_ANSWER_HAS(answer, member) \
	((answer)->info_bytes >= offsetof(struct tcp_info, member) + sizeof((answer)->info.member))

/* Asks about one connection. False: there is no such connection. fd: a NETLINK_SOCK_DIAG socket of
 * the connection's network namespace, with no other answer under way. record: the connection as a
 * table has it; the answer is used only if it has the same inode, or if the record has none. */
bool tcp_ask(int fd, const struct diag_record *record, struct tcp_answer *answer);
/* Takes an answer of the kernel. False: it is truncated, or of something else. Pure. */
bool tcp_answer_parse(const void *bytes, size_t length, const struct diag_record *record,
		      struct tcp_answer *answer);
/* True if the last data was sent, not received: an answer is due. Pure. */
bool tcp_answer_is_due(const struct tcp_answer *answer);

#define REQUEST_NONE (-1)

/* Milliseconds since the process on this side of the connection sent data, if it has received none
 * after that; 0 if the connection is being made. Else, or if the kernel does not know,
 * REQUEST_NONE. Parameters as for tcp_ask(). */
int64_t tcp_request_age_ms(int fd, const struct diag_record *record);

/* True if this side has received data after the last data that it sent. The kernel's times have the
 * resolution of its tick: if both are of one tick, the order is not known, and the result is true.
 * Otherwise like tcp_request_age_ms(). */
bool tcp_request_is_in(int fd, const struct diag_record *record);

/* The result of tcp_request_age_ms() for an answer of the kernel. REQUEST_NONE for a truncated or
 * unexpected answer. Pure. */
int64_t tcp_request_parse(const void *answer, size_t length, const struct diag_record *record);

#endif
