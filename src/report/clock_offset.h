/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The difference between the clocks of two hosts, found from what both recorded of the same TCP
 * connections. A request begins when its client begins to wait, and ends before the client waits
 * again: whatever the server's thread does for it lies between the two. Each pair of a client's
 * wait and a state of the thread that served the connection brackets the difference; the
 * difference is the one that the most pairs allow. Pure.
 *
 * Requests that follow each other like a clock allow several differences: then none is found.
 */
#ifndef TSNAP_REPORT_CLOCK_OFFSET_H
#define TSNAP_REPORT_CLOCK_OFFSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CLOCK_OFFSET_MAX_US (INT64_C(600) * 1000000) /* larger differences are not found */

/* Time in which a thread was in one state, as far as scans have seen it: from its begin to the last
 * scan that saw it, us, UTC by its host's clock. */
struct seen_span {
	int64_t from_us, to_us;
};

/* Spans of one side of a connection, in the order of time. Zeroed is empty. */
struct seen_spans {
	struct seen_span *spans;
	size_t count, capacity;
};

/* A connection: waits of its client's thread, and states of the thread that served it. */
struct connection_times {
	struct seen_spans waits, servings;
};

struct clock_offset {
	int64_t us;		 /* how far the server's clock is ahead of the client's */
	int64_t low_us, high_us; /* bounds that the pairs give */
	size_t pairs;		 /* pairs that agree with it */
};

/* Adds a scan that saw a thread in a state since from_us. At most `most` spans are kept. */
void seen_spans_add(struct seen_spans *spans, int64_t from_us, int64_t seen_us, size_t most);
void seen_spans_done(struct seen_spans *spans);

/* Finds the difference from the connections between two hosts. False: their pairs do not say it. */
bool clock_offset_find(const struct connection_times *const *connections, size_t count,
		       struct clock_offset *offset);

#endif
