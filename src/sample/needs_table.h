/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Needs of columns, at run time: a row per NEED_*, made of those in sample/needs.h. */
#ifndef TSNAP_SAMPLE_NEEDS_TABLE_H
#define TSNAP_SAMPLE_NEEDS_TABLE_H

#include <stddef.h>

#include "sample/needs.h"

enum needs_cost {
	COST_FREE,    /* in what is kept and read anyway */
	COST_SAMPLED, /* looked up for each sampled thread, and kept for a while */
	COST_EVENT,   /* a probe that would not be there otherwise */
	COST_COUNT,
};

extern const char *const needs_cost_names[COST_COUNT];

struct needs_row {
	uint64_t need; /* 0: what needs nothing */
	uint64_t implies;
	enum needs_cost cost;
	const char *name, *help;
};

/* In the order of SAMPLE_NEEDS. */
extern const struct needs_row needs_rows[];
extern const size_t needs_row_count;

/* The first of these needs; 0 when there is none. */
uint64_t needs_first(uint64_t needs);

/* The last row that these needs ask for by themselves; the first one where there are none. */
const struct needs_row *needs_dearest(uint64_t needs);

#endif
