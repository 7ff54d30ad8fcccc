/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kinds of --trace, as far as reports must know them; the rows are in src/live/trace_table.c. */
#ifndef TSNAP_SAMPLE_TRACE_KIND_H
#define TSNAP_SAMPLE_TRACE_KIND_H

#include <stdbool.h>
#include <stdint.h>

#include "sample/histogram.h"

#define TRACE_KINDS_MAX 16

/* What a distribution is of. */
enum trace_measure {
	TRACE_TIME,
	TRACE_AMOUNT, /* of numbers: buckets begin at 1 (sample/histogram.h) */
	TRACE_COUNT,  /* of nothing: events are only counted */
};

struct trace_kind {
	const char *name;
	const char *help;
	const char *columns; /* names of columns that its reports always have; NULL: none */
	/* Samples taken during such events: a filter expression that is true of them, and the
	 * column with the event's time until then, in microseconds. */
	const char *samples, *so_far;
	/* Facts that every event of this kind has besides its thread, NEED_* and KNOWN_*
	 * (sample/filter): a filter that needs these decides by the event. */
	uint64_t known;
	/* Names of columns by which a report sums up the events of a single kind as distributions,
	 * beside its own; NULL: it does not. */
	const char *sums;
	enum trace_measure measure;
	bool below;    /* values may be below 0, and are counted then */
	bool single;   /* reported as single events, not as distributions of the kernel's making */
	bool summed;   /* reports only sum them up: rows alone have the single events */
	bool runnable; /* events are waits for a CPU */
	bool sleeps;   /* events are sleeps, whose stacks samples have */
	bool bytes;    /* events move bytes, which are the amount of a histogram */
	bool quota;    /* part of an event may be for a quota, and that time is the amount */
	bool splits;   /* events consist of parts: cpu, run queue, disk, sleep */
	bool stacks;   /* reports show the stack of each event, or of each row */
	bool idles;    /* the amount is the idle time before events */
	bool fails;    /* events have an errno; failed ones are counted */
	bool stuck;    /* threads that are stuck in a wait are events, too, from samples */
	bool recorded; /* rare: a recorder (-o) has it, also without --trace */
	bool slower;   /* --slower reports it, unless --trace names kinds */
	bool screen;   /* --top measures it for screens of durations, unless --trace names kinds */
};

#endif
