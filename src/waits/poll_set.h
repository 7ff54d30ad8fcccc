/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A thread that waits for any of several descriptors: which of them decides whether it works.
 *
 * Descriptors that only the process itself can make ready do not count: they interrupt the wait.
 * The others decide: a single descriptor like a read of it; of several, a connection on which an
 * answer is due, unless the set also awaits connections or requests of clients.
 */
#ifndef TSNAP_WAITS_POLL_SET_H
#define TSNAP_WAITS_POLL_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "sample/wait_rule.h"

struct proc_syscall;

/* Sum of the facts of a set's descriptors, one after the other. Zeroed is none. */
struct wait_set_sum {
	int others;	       /* descriptors that others can make ready */
	int listens;	       /* descriptors of these that listen for connections */
	int serves;	       /* these, and connections that were accepted */
	bool wakes;	       /* eventfd or timerfd: the process itself may end the wait */
	bool open;	       /* a later scan knows more of a descriptor */
	bool connects;	       /* one of the others is a client's connection */
	struct wait_facts one; /* facts of the only descriptor, or of a connection on which an
				  answer is due */
	const char *connection, *remote; /* texts of the socket in `one`; NULL: none */
	int requesting; /* connections on which an answer is due: if there are any, `one` is one */
	bool several;	/* these are not all to one other side */
};

/* Adds the facts of a descriptor to the sum. Pure. own: only the process itself can make the
 * descriptor ready. has_request: an answer is due on it. connection, remote: texts of a socket, or
 * NULL. */
void wait_set_sum_add(struct wait_set_sum *sum, const struct wait_facts *facts, bool own,
		      bool has_request, const char *connection, const char *remote);
/* The facts of a set of `count` descriptors. Pure. */
struct wait_facts wait_set_decide(const struct wait_set_sum *sum, int64_t count, bool kept);

/* The descriptor that a thread waits for in poll(2) of it alone; -1: it is in another call. */
int poll_one_fd(const char *root, int64_t pid, int64_t tid, const struct proc_syscall *call);

#endif
