/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Takes the histograms of --trace out of the kernel. One of the two maps (bpf_text/latency.h) is
 * written while the other is read and emptied. So nothing is deleted under a probe, each histogram
 * and its maximum cover just the time since the reading before, and dead threads leave nothing.
 */
#ifndef TSNAP_MAPS_LATENCY_READER_H
#define TSNAP_MAPS_LATENCY_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/record.h"

/* Waits until all BPF programs that run now have ended, so that what they write is at rest. They
 * run inside of RCU's read side, and the kernel has a call that waits for that: membarrier(2), as
 * MEMBARRIER_CMD_GLOBAL is a synchronize_rcu() (4.3; kernel/sched/membarrier.c). Hosts with
 * nohz_full refuse it: there a fixed time is waited. It takes some ten milliseconds,
 * more on a busy host. */
void programs_wait(void);

struct latency_reader {
	int control, maps[LATENCY_TURNS];
	struct latency_slot *slots[LATENCY_TURNS]; /* NULL: the probes have none */
	size_t slot_count;			   /* slots in each array */
	bool batch;				   /* maps are read in batches */
	uint32_t first;				   /* LATENCY_TURN_FIRST of the probes */
	uint32_t turn, event_set;   /* words of struct latency_control as last written */
	int64_t turned_ns;	    /* time when the turn began */
	bool drained;		    /* the other map has been read since */
	struct programs_wait *wait; /* wait until the other map may be read; NULL: by time */
	/* histograms that are read and not yet taken */
	struct latency_key *keys;
	struct latency *values;
	size_t count, capacity;
};

/* Opens a reader. maps, slots: LATENCY_TURNS descriptors each, the caller's; slots: arrays for that
 * many CPUs, or -1. Until latency_reader_begin() the other functions do nothing. 0 or -errno. */
int latency_reader_init(struct latency_reader *reader, int control, const int *maps,
			const int *slots, int cpus, bool batch);
/* Returns LATENCY_TURN_FIRST for a set of probes that takes over from the set of from (NULL: from
 * none). */
uint32_t latency_turn_after(const struct latency_reader *from);
/* Has the probes report events from now on and, if counts is set, write histograms. */
void latency_reader_begin(struct latency_reader *reader, bool counts, int64_t now_ns);
/* Has the probes of reader report and count from now on, and those of from no more, by one write to
 * the map that both read: an event during which it comes is reported by both. When this returns, no
 * program is left that uses the old word, and all histograms of from, read or not, are reader's. 0
 * or -errno. */
int latency_reader_take_over(struct latency_reader *reader, struct latency_reader *from,
			     int64_t now_ns);
/* Lets the maps change turns about once a second. To be called often, because a map holds a limited
 * number of histograms. 0 or -errno. */
int latency_reader_turn(struct latency_reader *reader, int64_t now_ns);
/* Reads all that was written until now, which waits for some milliseconds. 0 or -errno. */
int latency_reader_finish(struct latency_reader *reader, int64_t now_ns);
/* Hands over the histograms that were read, and forgets them. */
void latency_reader_take(struct latency_reader *reader,
			 void (*take)(void *to, const struct latency_key *key,
				      const struct latency *latency),
			 void *to);
void latency_reader_done(struct latency_reader *reader);

#endif
