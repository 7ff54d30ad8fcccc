/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Needs of columns, at run time: a row per NEED_*, made from those in sample/needs.h. */
#ifndef TSNAP_SAMPLE_NEEDS_TABLE_H
#define TSNAP_SAMPLE_NEEDS_TABLE_H

#include <stddef.h>

#include "sample/needs.h"

enum needs_cost {
	COST_FREE,    /* part of what is recorded and read anyway */
	COST_SAMPLED, /* looked up for each sampled thread, and cached for a while */
	COST_EVENT,   /* needs a probe that would not be attached otherwise */
	COST_COUNT,
};

extern const char *const needs_cost_names[COST_COUNT];

struct needs_row {
	uint64_t need; /* 0: row of columns without needs */
	uint64_t implies;
	unsigned int probes; /* enum need_probe */
	enum needs_cost cost;
	const char *name, *help;
};

/* Rows, in the order of SAMPLE_NEEDS. */
extern const struct needs_row needs_rows[];
extern const size_t needs_row_count;

/* The first of these needs in the order of rows; 0 if there is none. */
uint64_t needs_first(uint64_t needs);

/* The last row that is one of these needs, not counting implied ones; the first row if there is
 * none. */
const struct needs_row *needs_dearest(uint64_t needs);

#endif
