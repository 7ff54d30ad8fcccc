/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --trace dns: queries over UDP, each with its answer.
 *
 *   bpf_text/dns.bpf.c: each message is an event -> event_reader: in the order of time
 *         -> dns_join(): a query is kept until its answer comes, by addresses, port and id
 *         -> one event, from the query's sending to the answer's arrival, of the thread that asked
 *
 * A query that is sent again, with the same id from the same socket, is one query. None of the
 * kernel's maps is needed, and what comes from the network is parsed here. Where events are lost,
 * nothing is said of the queries that wait then: their answers may have been among them.
 */
#ifndef TSNAP_LIVE_SCAN_LIVE_DNS_H
#define TSNAP_LIVE_SCAN_LIVE_DNS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cache.h"
#include "sample/sample.h"

struct latency_key;
struct trace_event;

/* A query is reported as unanswered so long after it was last sent: resolvers wait for 5 s, if
 * they are not told otherwise (RES_TIMEOUT of glibc; musl, Go). */
#define DNS_PATIENCE_NS 6000000000ll
#define DNS_QUERIES_MAX 16384 /* that wait at a time */

/* Zeroed: no query is known. */
struct dns_queries {
	struct cache waiting; /* struct dns_query, in live_dns.c */
	int64_t walked_ns;
	uint64_t lost_before; /* events */
	uint64_t refused;     /* queries that were too many */
};

/* Takes a message. True if *whole is a query's event now, which is complete. */
bool dns_join(struct dns_queries *queries, const struct trace_event *message,
	      struct trace_event *whole);

/* Hands over the queries that have got no answer; all: also those that may still get one. lost: how
 * many events were lost since the start. */
void dns_unanswered(struct dns_queries *queries, int64_t now_ns, bool all, uint64_t lost,
		    void (*take)(void *to, const struct trace_event *whole), void *to);

/* Fill a sample from the key and the data of a whole event: as members of struct trace_row. */
void dns_describe(const struct latency_key *key, struct sample *sample, bool *compat);
void dns_event(const struct trace_event *event, bool registers_marked, struct sample *who,
	       bool *compat);

void dns_queries_done(struct dns_queries *queries);

#endif
