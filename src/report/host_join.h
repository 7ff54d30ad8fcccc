/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Wait chains across hosts: a thread that waits as a client for a TCP connection leads to the
 * thread of another host that served this connection then (column serves), and on along that
 * one's chain, which may leave its host, too. Made of scans of the hosts' recordings around the
 * same time; nothing is read here.
 *
 * A connection is known by its two addresses and ports, which both of its ends must have recorded:
 * not one within a host, whose addresses other hosts have as well, and not one whose addresses are
 * translated on the way (NAT). Where two hosts have the same end, none is taken.
 *
 * Scans of two hosts are not of the same moment: the nearest one counts in which the client waited,
 * so a single sample may meet another request on the same connection. Shares of many samples are
 * right.
 */
#ifndef TSNAP_REPORT_HOST_JOIN_H
#define TSNAP_REPORT_HOST_JOIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "report/clock_offset.h"
#include "sample/sample.h"

#define JOIN_HOSTS_MAX 64

/* A scan. Its samples' texts must outlive it. */
struct host_scan {
	int64_t time_us, weight_us; /* time by the clock of the first host */
	struct sample *samples;
	size_t count;
	struct index by_tid, by_connection; /* to the place of the sample, plus one */
};

struct joined_host {
	const char *name;
	struct host_scan *scans; /* in the order of time */
	size_t count, capacity;
	struct keyed servers; /* process of each connection that was served, by connection */
};

/* Samples that waited for a connection to another host, by where that led. */
enum join_end {
	JOIN_THREAD,  /* a thread served it */
	JOIN_PROCESS, /* none did at that time, but the process is known that does at other times */
	JOIN_NOWHERE, /* the other end is in no recording */
	JOIN_ENDS,
};

/* What a chain that leaves its host led to. */
struct join_path {
	bool leaves;	    /* else there is nothing more here */
	enum join_end end;  /* where the wait of the first host leads to */
	size_t server_host; /* who serves its connection; if end is JOIN_NOWHERE, nobody */
	const char *server; /* name of that thread, or else process */
	size_t last_host;   /* who is the last one that serves */
	const char *last;   /* name */
	const struct sample *last_sample; /* as its host recorded it; NULL: no thread is known */
};

struct host_clock {
	bool known;
	size_t by;		    /* host that it was compared with */
	struct clock_offset offset; /* how far it is ahead of that one */
	int64_t ahead_us;	    /* how far it is ahead of the first host's */
};

/* Zeroed is empty. */
struct host_join {
	struct joined_host hosts[JOIN_HOSTS_MAX];
	size_t host_count;
	int64_t ends[JOIN_ENDS];
	struct keyed connections; /* struct join_connection, by text */
	struct keyed times;	  /* struct join_times, by connection */
	struct host_clock clocks[JOIN_HOSTS_MAX];
};

void host_join_add_host(struct host_join *join, const char *name);

/* Beforehand: takes the samples of a scan as the host recorded them, of any hosts in any order, for
 * the processes of connections; then finds how the clocks differ, in join->clocks. */
void host_join_time(struct host_join *join, size_t host, int64_t time_us,
		    const struct sample *samples, size_t count);
void host_join_find_clocks(struct host_join *join);

/* Adds the next scan of a host, and copies its samples. Scans before a time are forgotten. */
void host_join_add(struct host_join *join, size_t host, int64_t time_us, const struct scan *scan);
void host_join_forget(struct host_join *join, int64_t before_us);

/* Fills the chain of a sample of that scan as far as the scans lead; names of roots become
 * NAME@HOST. path: what it led to, until scans are forgotten. */
void host_join_fill(struct host_join *join, size_t host, const struct host_scan *scan,
		    struct sample *sample, struct join_path *path);
/* Adds @HOST to the names of the sample's threads. */
void host_join_name(const struct host_join *join, size_t host, struct sample *sample);
void host_join_done(struct host_join *join);

#endif
