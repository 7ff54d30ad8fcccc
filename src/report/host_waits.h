/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who waits for whom across hosts, and what those did meanwhile that the waits led to: for each
 * program that waited for a server on another host, and each cause, the number of samples. Made of
 * samples whose chains report/host_join.h has joined.
 *
 * A sample of a wait meets one scan of the other host, which may be of another request: shares of
 * few samples are not told.
 */
#ifndef TSNAP_REPORT_HOST_WAITS_H
#define TSNAP_REPORT_HOST_WAITS_H

#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "base/text.h"
#include "report/host_join.h"

/* What the last thread that served did. */
struct host_cause {
	const char *last; /* its name */
	const char *does; /* "waits for file lock /x held by b@db-1, which runs"; interned */
	size_t host;
	uint64_t key; /* finding_key_of() its samples on that host; 0: none, or several */
	int64_t samples;
};

/* A program that waits for a server on another host. */
struct host_wait {
	const char *waiter, *server;
	size_t waiter_host, server_host;
	int64_t samples, weight_us; /* all that wait */
	uint64_t key;	 /* finding_key_of() those, as their host recorded them; 0: as of a cause */
	int64_t matched; /* samples that met a thread which served */
	struct keyed causes; /* struct host_cause; sorted: most samples first */
};

/* Zeroed is empty. */
struct host_waits {
	struct keyed waits; /* struct host_wait; sorted: most time first */
};

/* Adds a sample as its host recorded it, and what its chain led to. */
void host_waits_add(struct host_waits *waits, const struct host_join *join, size_t host,
		    const struct sample *sample, const struct join_path *path);
/* Sorts them. Returns how many have time and samples enough to be told; those come first. */
size_t host_waits_sort(struct host_waits *waits, int64_t elapsed_us);
/* True if the cause is that of samples enough, beside the wait's first cause. */
bool host_cause_counts(const struct host_wait *wait, const struct host_cause *cause);
/* Adds what the wait's server did: "runs", or of a thread beyond it "waits for b@db-1, which runs".
 */
void host_cause_add(struct text *text, const struct host_wait *wait, const struct host_cause *cause,
		    const struct host_join *join);
void host_waits_clear(struct host_waits *waits);

#endif
