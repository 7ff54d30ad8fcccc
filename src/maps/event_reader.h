/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Takes single events out of the rings that probes write (bpf_text/events.h). To be called often
 * enough: an event that was overwritten before it was read is counted as lost.
 */
#ifndef TSNAP_MAPS_EVENT_READER_H
#define TSNAP_MAPS_EVENT_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/record.h"

struct event_reader {
	int map, cpus;		    /* map -1: there are no events */
	struct event_ring *rings;   /* NULL: rings are copied to read them */
	struct event_ring *copy;    /* copy of one CPU's ring, where they are not mapped */
	uint64_t *taken, *awaited;  /* events read of each CPU; awaited one's index plus one */
	struct trace_event *events; /* events that are read and not yet handed over */
	size_t count, capacity;
	uint64_t lost_count;
};

/* Opens a reader. map: the caller's, or -1; mapped: it can be mapped. 0 or -errno. */
int event_reader_init(struct event_reader *reader, int map, int cpus, bool mapped);
/* Reads the events since the last call: events and count have them, in the order of time. */
void event_reader_read(struct event_reader *reader);
/* The same, and hands them over and forgets them. */
void event_reader_take(struct event_reader *reader,
		       void (*take)(void *to, const struct trace_event *event), void *to);
/* Hands over what was read, and forgets it. */
void event_reader_give(struct event_reader *reader,
		       void (*take)(void *to, const struct trace_event *event), void *to);
/* Moves the events of from that were not handed over to reader. No probe may write to from any
 * more, and none that did may still run. An event during which the probes of reader took over is in
 * both: it is reported once. */
void event_reader_adopt(struct event_reader *reader, struct event_reader *from);
void event_reader_done(struct event_reader *reader);

#endif
