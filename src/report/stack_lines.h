/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The most frequent stacks of each line of a report (--stacks): samples grouped by the report's
 * keys and their stack, in bounded memory, and found again by the keys of a line.
 */
#ifndef TSNAP_REPORT_STACK_LINES_H
#define TSNAP_REPORT_STACK_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "report/exact_times.h"
#include "report/grid.h"

#define STACK_LINE_NONE SIZE_MAX

/* A zeroed struct is disabled: it takes nothing and reports nothing. */
struct stack_lines {
	size_t most; /* limit of stacks that are shown for a line */
	bool wakers;
	struct column_list list; /* keys of the report, then the columns of a stack */
	size_t key_count;
	struct group_table groups;
	struct grid grid;      /* rows of the groups, most time first */
	const struct grid *of; /* report that the lines were filled for */
	struct index first;    /* hash of a line's keys to a row of grid, plus one */
	uint32_t *next;	       /* another row of equal hash, plus one */
	size_t next_capacity;
	int64_t samples, known; /* counts of all samples, and of those with a stack */
};

/* list: the report's columns, which need not outlive it. wakers: stacks include those of the
 * threads that woke them.
 */
void stack_lines_init(struct stack_lines *lines, size_t most, const struct column_list *list,
		      bool wakers);
/* Needs of the lines, NEED_*. */
uint64_t stack_lines_needs(const void *lines);
/* note: see report/group_split.h; splitting the groups, if wanted, and sharing out are up to the
 * caller. */
void stack_lines_add(void *lines, const struct sample *sample, struct exact_note note);
/* Prepares the lines of that report; valid until the next one is filled. */
void stack_lines_fill(struct stack_lines *lines, const struct grid *report,
		      const struct tally *tally);
void stack_lines_clear(void *lines);
void stack_lines_done(void *lines);

/* Iterates over the stacks of a line of the report, most time first: returns the one after
 * `before`. STACK_LINE_NONE begins and ends the iteration. */
size_t stack_lines_next(const struct stack_lines *lines, size_t line, size_t before);
/* Frames of a stack as in the column `stack`, NULL where it has none; the thread that woke it; and
 * its time. */
const char *stack_line_frames(const struct stack_lines *lines, size_t stack);
const char *stack_line_waker_stack(const struct stack_lines *lines, size_t stack);
const char *stack_line_waker_comm(const struct stack_lines *lines, size_t stack);
int64_t stack_line_weight_us(const struct stack_lines *lines, size_t stack);

#endif
