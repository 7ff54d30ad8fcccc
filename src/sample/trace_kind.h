/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kinds of --trace, as far as reports must know; the rows are in src/live/trace_table.c. */
#ifndef TSNAP_SAMPLE_TRACE_KIND_H
#define TSNAP_SAMPLE_TRACE_KIND_H

#include <stdbool.h>
#include <stdint.h>

#include "sample/histogram.h"

struct trace_kind {
	const char *name;
	const char *help;
	const char *columns; /* names of those that it is told by in any case; NULL: none */
	/* Samples taken in the midst of such events: what is true of them, as a filter expression,
	 * and the column with the event's time until then, in microseconds. */
	const char *samples, *so_far;
	/* Facts that every event of this kind tells besides its thread, NEED_* and KNOWN_*
	 * (sample/filter): a filter that asks for these decides by the event. */
	uint64_t known;
	bool runnable; /* events are waits for a CPU */
	bool bytes;    /* events move bytes, the amount of a histogram, */
	bool quota;    /* or are in part for a quota, and that time is */
	bool fails;    /* events have an errno; failed ones are counted */
};

#endif
