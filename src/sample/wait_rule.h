/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Wait classes: a sleeping thread works (it waits for an answer) or is idle (it waits for something
 * to do), by the first row of one table that fits. Pure.
 *
 * A thread in S that works is shown without -a. In the table a client works, and its server sleeps
 * until the request comes; who waits for another thread's lock works; who waits for a child, a
 * condition variable or the end of a pipe does not, because who it waits for is shown itself: but a
 * server's thread on a condition variable does while its client waits.
 */
#ifndef TSNAP_SAMPLE_WAIT_RULE_H
#define TSNAP_SAMPLE_WAIT_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DAEMON_PORTS_DEFAULT 10000 /* --daemon-ports, unless given */

enum wait_kind {
	WAIT_UNKNOWN,
	WAIT_FILE,    /* a file, directory or device */
	WAIT_SOCKET,  /* see listens, accepts_there and the ports */
	WAIT_PIPE,    /* pid: who has the other end */
	WAIT_LOCK,    /* pid and tid: who holds it, where that is known */
	WAIT_SET,     /* count descriptors; see asks */
	WAIT_PROCESS, /* pid: whose end, or change of state */
	WAIT_IO,      /* inflight requests */
	WAIT_TIMER,
	WAIT_SIGNAL,
	WAIT_EVENT, /* eventfd, inotify, ... */
};

/* Facts of a thread's wait, as waits/waits finds them. Numbers are ABSENT where not known. */
struct wait_facts {
	enum wait_kind kind;
	bool listens;	    /* a socket that connections are accepted from; a set of such sockets */
	bool accepts_there; /* a socket of the server's side: its port, or path, is listened on */
	bool connected;	    /* a socket whose other side has an address, or a path */
	bool stored; /* a file of a file system for data: no device, nothing in /proc or /sys */
	int64_t local_port, remote_port;
	int64_t pid, tid; /* for whom */
	int64_t inode;	  /* inode of the pipe, or of the socket at the other end */
	int64_t count;	  /* descriptors of a set, locks of futex_waitv(2) */
	int64_t inflight;
	int64_t readers;  /* threads that share a lock */
	int64_t turn;	  /* lock of a language's runtime: a number per holder */
	bool one_of_many; /* such a lock: a Java monitor, not Python's GIL */
	bool changing;	  /* the holder of such a lock may be about to change */
	/* a server's thread: its connection's socket, while the client waits (waits/served.c) */
	int64_t served_inode;
	int64_t armed; /* requests in flight that only wait until a descriptor is ready */
	/* the set, or the only one of its descriptors that counts */
	bool has_request; /* a connection of a client on which an answer is due; its ports */
	bool open;	  /* a later scan knows more of a descriptor */
	bool changes;	  /* an answer may come to be due while the thread sleeps on */
	/* process and socket at the other end of a set's only such connection, also beside sockets
	 * that are listened on */
	int64_t requested_pid, requested_inode;
};

struct wait_rule {
	const char *name; /* column why; of two rows, where one can't tell all */
	bool works;
	const char *calls;   /* calls that decide alone, with spaces around each; NULL: none */
	enum wait_kind kind; /* kind that other calls wait for; 0: none */
	/* condition on these; NULL: all */
	bool (*fits)(const struct wait_facts *facts, int64_t daemon_ports);
	const char *help; /* explanation for users */
};

extern const struct wait_facts wait_facts_absent;
extern const struct wait_rule wait_rules[];
extern const size_t wait_rule_count;

/* The rule for a system call by itself, or NULL: it takes facts. */
const struct wait_rule *wait_rule_of_call(const char *syscall);
/* The rule for what is waited for; never NULL. */
const struct wait_rule *wait_rule_of_facts(const struct wait_facts *facts, int64_t daemon_ports);
/* The first rule of that name; NULL: there is none, or no name. */
const struct wait_rule *wait_rule_find(const char *name);
/* True if a rule of that name is for work. */
bool wait_class_works(const char *name);

#endif
