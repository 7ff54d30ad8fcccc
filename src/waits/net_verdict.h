/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a wait for a TCP connection is for, by what the kernel knows of it: a packet that is under
 * way or lost, the peer's host, or its program (columns net to sndbuf_pct).
 *
 * One query (waits/tcp_request.h, some microseconds) for each connection that a thread waits for,
 * which serves for a second of the wait. Nothing is asked unless one of the columns is wanted, or a
 * wait chain ends at such a wait.
 */
#ifndef TSNAP_WAITS_NET_VERDICT_H
#define TSNAP_WAITS_NET_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "sample/sample.h"
#include "waits/tcp_request.h"

#define NET_STILL_NS 1000000000ll /* an answer serves for so much of the wait that it is of */

enum net_verdict {
	NET_UNKNOWN,
	NET_ACCEPT,  /* a listening socket */
	NET_SYN,     /* SYN sent, no answer */
	NET_BACKLOG, /* SYN sent, and the accept queue of the socket that listens here is full */
	NET_RESEND,  /* sent again, and no acknowledgement */
	NET_WINDOW,  /* the peer's window has no room */
	NET_HELD,    /* not sent yet, though there is room */
	NET_TRANSIT, /* sent, not acknowledged yet */
	NET_PEER,    /* acknowledged, no answer */
	NET_UNREAD,  /* bytes are here that this side has not read */
	NET_QUIET,   /* nothing is due */
	NET_VERDICT_COUNT,
};

/* The verdict on a connection. asleep_us: how long the thread has waited; ABSENT: not known. *us:
 * time since the verdict's packet, at least; ABSENT: not known. Pure. */
enum net_verdict net_verdict_of(const struct tcp_answer *answer, int64_t asleep_us, int64_t *us);
/* Writes a verdict, not NET_UNKNOWN, in words. Times are coarse, so that the texts of a report are
 * few. Pure. */
void net_verdict_tell(struct text *text, enum net_verdict verdict, const struct tcp_answer *answer,
		      int64_t us);

/* Fills sample->net for a wait for the socket with that inode. Returns when the answer is to be
 * asked for again (monotonic): never, of no TCP socket. 0: this scan had no time for it. */
int64_t net_verdict_fill(int64_t inode, struct sample *sample, int64_t now_ns);
/* The verdict on a connection in words, without times; valid until the next call. NULL: none. */
const char *net_verdict_words(int64_t inode, const struct sample *sample, int64_t now_ns);

void net_verdicts_sweep(int64_t now_ns, int64_t idle_ns);
void net_verdicts_done(void);

#endif
