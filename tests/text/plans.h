/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The texts that text_check compiles: plans of probes, and the knobs that kernels of a time offer
 * with what users request. */
#ifndef TSNAP_TESTS_PLANS_H
#define TSNAP_TESTS_PLANS_H

#include "kernel/probe_table.h"
#include "kernel/program_text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STACK_REGISTERS 16216 /* no field has this offset */
#define PLAN_WORDS_SIZE 160

/* Rows of a plan: for each group one of these kinds, or none. */
struct plan_kind {
	const char *name;
	unsigned int kinds; /* bits 1 << PROBE_x */
	bool last;	    /* uses the last of several rows of a kind, not the first */
	uint64_t groups;    /* only these groups, GROUP_BIT()s; 0: all */
	bool old;	    /* only old kernels have it: see plan_is_old() */
};

extern const struct plan_kind plan_kinds[];
extern const size_t plan_kind_count;

/* Knobs of a text. */
struct knob_choice {
	int bits;
	uint32_t kinds; /* kinds of --trace, bits 1 << LATENCY_x; 0: all */
};

#define OFFSETS_CHOICES 5 /* number of first rows that are enough for an offsets file */

extern const struct knob_choice knob_choices[];
extern const size_t knob_choice_count;

struct program_knobs knobs_of(const struct knob_choice *choice);

void plan_fill(const struct plan_kind *kind, struct probe_plan *plan);

/* Does what plan_fill() does, without the probes that the knobs do not support. */
void plan_choose(const struct plan_kind *kind, const struct program_knobs *knobs,
		 struct probe_plan *plan);

/* Writes the name of a plan with its knobs, for the budget and for users. */
void plan_words(const struct plan_kind *kind, const struct program_knobs *knobs,
		char words[PLAN_WORDS_SIZE]);

/* True if kernels before 5.5 may get such programs: one with raw tracepoints lets helpers write to
 * a map's value, too. */
bool plan_is_old(const struct plan_kind *kind, const struct knob_choice *choice);

/* The oldest kernel that may get the program of this row: FEATURE_SINCE(). */
uint32_t release_oldest(const struct program_knobs *knobs, const struct probe_row *row);

#endif
