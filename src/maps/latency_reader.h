/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Takes the histograms of --trace out of the kernel. Of the two maps (bpf_text/latency.h) one is
 * written while the other is read and emptied. So nothing is deleted under a probe, each histogram
 * tells just what came since the reading before, its maximum too, and dead threads leave nothing.
 */
#ifndef TSNAP_MAPS_LATENCY_READER_H
#define TSNAP_MAPS_LATENCY_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/record.h"

struct latency_reader {
	int control, maps[LATENCY_TURNS];
	struct latency_slot *slots[LATENCY_TURNS]; /* NULL: the probes have none */
	size_t slot_count;			   /* in each */
	bool batch;				   /* maps are read in batches */
	uint32_t first;				   /* LATENCY_TURN_FIRST of the probes */
	uint32_t turn, event_set;   /* words of struct latency_control as last written */
	int64_t turned_ns;	    /* when it began */
	bool drained;		    /* the other map has been read since */
	struct programs_wait *wait; /* until it may be; NULL: for some time */
	/* read, and not yet taken */
	struct latency_key *keys;
	struct latency *values;
	size_t count, capacity;
};

/* maps, places: LATENCY_TURNS of each, places of so many CPUs or -1. The descriptors stay the
 * caller's. Until latency_reader_begin() all else does nothing. 0 or -errno. */
int latency_reader_init(struct latency_reader *reader, int control, const int *maps,
			const int *slots, int cpus, bool batch);
/* Returns LATENCY_TURN_FIRST for a set of probes that takes over from that of from (NULL: from
 * none). */
uint32_t latency_turn_after(const struct latency_reader *from);
/* Probes tell events from now on and, where they are asked to count, write histograms. */
void latency_reader_begin(struct latency_reader *reader, bool counts, int64_t now_ns);
/* From now on its probes do that, and those of from no more, which is one write to the map that
 * both heed: an event in whose midst it comes is told by both. When this returns no program is left
 * that heeds the old word, and what from has, read or not, is reader's. 0 or -errno. */
int latency_reader_take_over(struct latency_reader *reader, struct latency_reader *from,
			     int64_t now_ns);
/* To be called often, for its map has so many places only: lets the maps change turns about once a
 * second. 0 or -errno. */
int latency_reader_turn(struct latency_reader *reader, int64_t now_ns);
/* Reads all that was written until now, which waits for some milliseconds. 0 or -errno. */
int latency_reader_finish(struct latency_reader *reader, int64_t now_ns);
/* Hands over what was read, and forgets it. */
void latency_reader_take(struct latency_reader *reader,
			 void (*take)(void *to, const struct latency_key *key,
				      const struct latency *latency),
			 void *to);
void latency_reader_done(struct latency_reader *reader);

#endif
