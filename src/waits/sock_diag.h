/* SPDX-License-Identifier: GPL-2.0-or-later */
/* All sockets of one family and protocol in one network namespace, from sock_diag(7) (inet_diag and
 * unix_diag, 3.3+): a table by inode, read in pieces, so that a host with a hundred thousand
 * connections does not delay a scan.
 *
 * The kernel may load its modules inet_diag, tcp_diag, udp_diag, unix_diag for it, as for ss(8).
 */
#ifndef TSNAP_WAITS_SOCK_DIAG_H
#define TSNAP_WAITS_SOCK_DIAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "base/text.h"

#define SOCKETS_MAX 131072 /* limit of sockets in a table; others are not known */
#define SOCKETS_WAITING_MAX 4096

/* States of include/net/tcp_states.h, for all families. */
#define STATE_ESTABLISHED 1
#define STATE_SYN_SENT 2
#define STATE_SYN_RECV 3
#define STATE_TIME_WAIT 6
#define STATE_LISTEN 10

enum diag_group { DIAG_TCP, DIAG_UDP, DIAG_UNIX, DIAG_MPTCP, DIAG_GROUP_COUNT };

struct diag_address {
	uint8_t bytes[16]; /* IPv4 as ::ffff:a.b.c.d */
	uint16_t port;
};

struct diag_record {
	uint32_t inode;
	uint32_t peer;	    /* AF_UNIX: inode of the other side; 0: none */
	uint32_t interface; /* interface that the socket is bound to; for link-local addresses */
	uint32_t state;	    /* STATE_*, or another one of include/net/tcp_states.h */
	uint32_t name;	    /* AF_UNIX: offset in names; 0: it has no name */
	/* TCP sockets that listen: connections that wait to be accepted, and the limit of these */
	uint32_t queued, backlog;
	struct diag_address local, remote;
};

/* records are compared as bytes */
_Static_assert(sizeof(struct diag_record) == 64, "diag_record has no holes");

struct diag_records {
	struct diag_record *rows;
	size_t count, capacity;
	struct index by_inode;	      /* inode to the position in rows */
	struct index by_pair;	      /* hash of both addresses to the position in rows */
	struct index by_queued;	      /* AF_UNIX: inode of a socket whose connection is not accepted
					 yet to the position of the one that has to do that */
	uint64_t listens[65536 / 64]; /* TCP: a bit for each port that is listened on */
	struct text names;	      /* AF_UNIX: names, each ended by a NUL */
	/* TCP: established connections with data that is not read (queued: bytes), and those that
	 * belong to no process (inode 0): they are not accepted yet. Up to SOCKETS_WAITING_MAX. */
	struct diag_record *waiting;
	size_t waiting_count, waiting_capacity;
};

struct diag_table {
	enum diag_group group;
	int fd; /* NETLINK_SOCK_DIAG socket of the namespace; its owner closes it */
	struct diag_records now;  /* the read that ended last, as of now_ns */
	struct diag_records next; /* the read under way */
	int64_t now_ns;		  /* time when the read of `now` began; 0: none has ended */
	int64_t begun_ns;	  /* time when the last read began, complete or not */
	int64_t next_ns;	  /* time when the read of `next` began; 0: none is under way */
	int64_t spent_ns;	  /* time spent on the read under way, or on the last one */
	size_t step; /* present query: the families of a group are read one after the other */
	int err;     /* -errno of the last read; 0: it did not fail */
};

/* Begins or continues to read until the table is as of now_ns or later (true), or until_ns
 * (monotonic) has come. False also where the kernel refuses (err). */
bool diag_table_read(struct diag_table *table, int64_t now_ns, int64_t until_ns);
void diag_table_done(struct diag_table *table);

/* The socket with this inode. NULL: not in the table. */
const struct diag_record *diag_record_find(const struct diag_table *table, uint32_t inode);
/* UDP: the only socket of this namespace that gets what a connected one sends; NULL: not known. */
const struct diag_record *diag_record_receiver(const struct diag_table *table,
					       const struct diag_record *record);
/* The other end of a TCP connection within this namespace, or NULL. */
const struct diag_record *diag_record_opposite(const struct diag_table *table,
					       const struct diag_record *record);
/* The connection that has the very addresses of a record of another namespace, or NULL. */
const struct diag_record *diag_record_same(const struct diag_table *table,
					   const struct diag_record *record);
/* The socket of this namespace on whose queue the connection waits to be accepted, or that has no
 * room for it; NULL: none is known. */
const struct diag_record *diag_record_listener(const struct diag_table *table,
					       const struct diag_record *record);
/* AF_UNIX: the socket with that name, as the table has it, that listens, or that takes datagrams of
 * any sender; NULL: none, or several. */
const struct diag_record *diag_record_named(const struct diag_table *table, const char *name,
					    bool listens);
bool diag_port_listens(const struct diag_table *table, uint16_t port);

#endif
