/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Takes the histograms of --trace out of the kernel. Of the two maps (bpf_text/latency.h) one is
 * written while the other is read and emptied. So nothing is deleted under a probe, each histogram
 * tells just what came since the reading before, its maximum too, and dead threads leave nothing.
 */
#ifndef TSNAP_KERNEL_LATENCY_READER_H
#define TSNAP_KERNEL_LATENCY_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/record.h"

struct latency_reader {
	int control, maps[LATENCY_TURNS];
	bool batch;	   /* maps are read in batches */
	uint32_t turn;	   /* as in struct latency_control */
	int64_t turned_ns; /* when it began */
	bool drained;	   /* the other map has been read since */
	/* read, and not yet taken */
	struct latency_key *keys;
	struct latency *values;
	size_t count, capacity;
};

/* maps: LATENCY_TURNS. The descriptors stay the caller's. Until latency_reader_begin() all else
 * does nothing. */
void latency_reader_init(struct latency_reader *reader, int control, const int *maps, bool batch);
/* Probes write from now on, */
void latency_reader_begin(struct latency_reader *reader, int64_t now_ns);
/* and no more; what they have written is read. 0 or -errno. */
int latency_reader_end(struct latency_reader *reader);
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
/* What from has read and was not taken becomes reader's. */
void latency_reader_adopt(struct latency_reader *reader, struct latency_reader *from);
void latency_reader_done(struct latency_reader *reader);

#endif
