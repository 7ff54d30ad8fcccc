/* SPDX-License-Identifier: GPL-2.0-or-later */
/* List of threads that were woken or began since the last scan: the reader's side of ts_sampling
 * and ts_changed, see bpf_text/thread_state.h. Any number of samplers may read.
 */
#ifndef TSNAP_MAPS_CHANGED_LIST_H
#define TSNAP_MAPS_CHANGED_LIST_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/record.h"

struct changed_reader {
	int sampling_map, changed_map; /* descriptors, not owned */
	int cpus;		       /* possible CPUs */
	struct sampling *sampling;     /* mapped ts_sampling, and ts_changed; NULL: not mapped */
	struct changed_ring *rings;
	struct changed_ring copy; /* copy of one CPU's ring, where the maps are not mapped */
	uint64_t *taken;	  /* entries read of each CPU's ring, a count since its beginning */
	bool began;
};

/* Opens a reader; with -1 for a map it never has a list. mapped: the maps can be mapped. 0 or
 * -errno; the caller calls changed_reader_done() either way. */
int changed_reader_init(struct changed_reader *reader, int sampling_map, int changed_map, int cpus,
			bool mapped);
void changed_reader_done(struct changed_reader *reader);

/* Begins a new scan and calls visit for the key of each record listed since the one before, for
 * some perhaps twice. False: the list is not complete (there are no rings, it is the first scan, or
 * more was listed than one holds), and every thread must be looked at. */
bool changed_reader_take(struct changed_reader *reader, void (*visit)(void *to, uint32_t key),
			 void *to);

#endif
