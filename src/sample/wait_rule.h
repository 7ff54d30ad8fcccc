/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Wait classes: a sleeping thread works (it waits for an answer) or is idle (it waits for something
 * to do), by the first row of one table that fits. Pure functions.
 *
 * A thread in S that works is shown without -a. In the table a client works, and its server sleeps
 * until the request comes. A thread that waits for another thread's lock works. One that waits for
 * a child, a condition variable or the end of a pipe does not, because what it waits for is shown
 * itself; but a server's thread on a condition variable works while its client waits.
 */
#ifndef TSNAP_SAMPLE_WAIT_RULE_H
#define TSNAP_SAMPLE_WAIT_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sample/edge_kind.h"

#define DAEMON_PORTS_DEFAULT 10000 /* default of --daemon-ports */

enum wait_kind {
	WAIT_UNKNOWN,
	WAIT_FILE,    /* a file, directory or device */
	WAIT_SOCKET,  /* see listens, accepts_there and the ports */
	WAIT_PIPE,    /* pid: the process at the other end */
	WAIT_LOCK,    /* pid and tid: the holder, if that is known */
	WAIT_SET,     /* count descriptors; see has_request */
	WAIT_PROCESS, /* pid: the process whose end, or change of state, is waited for */
	WAIT_IO,      /* inflight: number of requests */
	WAIT_TIMER,
	WAIT_SIGNAL,
	WAIT_EVENT, /* eventfd, inotify, ... */
};

/* Facts of a thread's wait, as waits/waits finds them. Numbers are ABSENT where not known. */
struct wait_facts {
	enum wait_kind kind;
	const struct wait_object *object; /* waits/wait_object.h; NULL: not known */
	bool listens;	    /* socket that connections are accepted from; set of such sockets */
	bool accepts_there; /* socket of the server's side: its port, or path, is listened on; set
			       of such sockets */
	bool connected;	    /* socket whose other side has an address, or a path */
	bool dns;	    /* a client's connection to whoever resolves host names */
	bool stored; /* file of a file system for data: no device, nothing in /proc or /sys */
	bool writes; /* of the two descriptors of a call, the one that data goes to */
	int64_t local_port, remote_port;
	int64_t pid, tid; /* process and thread that are waited for */
	int64_t inode;	  /* inode of the pipe, or of the socket at the other end */
	int64_t own;	  /* inode of the socket itself that is waited for */
	/* number of descriptors of a set, of locks of futex_waitv(2), or of processes that have the
	 * file or lock of which pid is one */
	int64_t count;
	int64_t inflight;
	int64_t readers;     /* number of threads that share a lock */
	enum edge_kind lock; /* kind of the edge to tid, if that holds a lock */
	int64_t turn;	     /* lock of a language's runtime: a number per holder */
	const char
		*lost;	 /* of a lock that nobody can let go of: who took it; NULL: none is known */
	bool changing;	 /* the holder of the runtime's lock may be about to change */
	bool other_user; /* the lock's word names another user's thread as its holder, which the
			    waiter's user can write there for any thread */
	/* socket of a server's thread's connection, while the client waits (waits/served.c) */
	int64_t served_inode;
	bool program_tells; /* the program's memory shows whether the thread serves a client: */
	bool serves_client;
	int64_t armed; /* number of requests in flight that only wait until a descriptor is ready */
	/* a set of descriptors, or the only one of them that counts */
	bool polls;	    /* the call is a poll, a select or a wait of epoll(7) */
	bool kept;	    /* it is of epoll(7) */
	bool has_request;   /* a client's connection on which an answer is due; has its ports */
	int64_t request_ns; /* when the request was sent, monotonic; ABSENT: not known */
	bool open;	    /* a later scan knows more of a descriptor, or of a lock */
	bool changes;	    /* an answer may become due while the thread is still asleep */
	/* process and socket at the other end of a set's connection of that kind, also if there are
	 * sockets that are listened on */
	int64_t requested_pid, requested_inode;
};

enum wait_rule_trait {
	WAIT_WORKS = 1,	     /* the thread works; else it is idle */
	WAIT_OF_POOL = 2,    /* threads of pools wait so for something to do */
	WAIT_ASKS_FACTS = 4, /* facts decide of its calls, too */
	/* what an interrupt comes from that ends such a wait */
	INTERRUPT_TIMER = 8,
	INTERRUPT_NETWORK = 16,
	INTERRUPT_DISK = 32,
	/* what the thread waits for */
	WAIT_AS_CLIENT = 64,  /* an answer of its server */
	WAIT_AS_SERVER = 128, /* a client that speaks */
	WAIT_FOR_FILE = 256,
	WAIT_FOR_SPACE = 512, /* to write to */
	WAIT_FOR_TIME = 1024,
};

struct wait_rule {
	const char *name;    /* column why; two rows may share a name */
	unsigned int traits; /* enum wait_rule_trait */
	const char *calls;   /* calls that decide, with spaces around each; NULL: none */
	enum wait_kind kind; /* kind of wait of other calls; 0: none */
	/* condition on the facts; NULL: always true */
	bool (*fits)(const struct wait_facts *facts, int64_t daemon_ports);
	const char *help; /* explanation for users */
};

extern const struct wait_facts wait_facts_absent;
extern const struct wait_rule wait_rules[];
extern const size_t wait_rule_count;

/* The rule of a system call; NULL: facts decide. */
const struct wait_rule *wait_rule_of_call(const char *syscall);
/* The rule for the facts of a wait; never NULL. */
const struct wait_rule *wait_rule_of_facts(const struct wait_facts *facts, int64_t daemon_ports);
/* The first rule of that name; NULL: there is none, or name is NULL. */
const struct wait_rule *wait_rule_find(const char *name);
/* The traits of the first rule of that name; 0: there is none, or name is NULL. */
unsigned int wait_class_traits(const char *name);
/* True if that rule says that the thread works. */
bool wait_class_works(const char *name);

#endif
