/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables that --chains adds to a report, one for each of its parts, and a sentence about each. */
#include "report/chain_report.h"
#include "render/renderer.h"
#include "report/value.h"

#define ROWS_MAX 10

static const struct {
	const char *some, *none; /* sentence above the table, or in its place; NULL: none */
} words[CHAIN_PARTS] = {
	[CHAIN_ROOTS] = {"Who others wait for in the end: seconds that they waited, how many "
			 "at a time, and what the root did meanwhile, in percent",
			 "No thread is known to have waited for another one."},
	[CHAIN_LOCKS] =
		{"Locks that were waited for: seconds, how many threads at a time, the "
		 "longest wait, and how often a scan saw another holder than the one before",
		 NULL},
	[CHAIN_QUEUES] = {"Who waited for a CPU (COMM), and who was on it", NULL},
	[CHAIN_DEVICES] = {"Who waited for a block device (COMM), and which other processes had "
			   "requests in flight there",
			   NULL},
	[CHAIN_CYCLES] = {"Threads that wait for each other. DEADLOCK: for ever", NULL},
};

static void part_add(struct text *out, const struct interval *interval, enum chain_part part)
{
	const struct grid *grid = &interval->chains->grids[part];
	size_t rows = grid->row_count < ROWS_MAX ? grid->row_count : ROWS_MAX;
	struct interval table = *interval;
	struct text line = {0};

	table.grid = grid;
	table.stacks = part == CHAIN_ROOTS ? &interval->chains->stacks : NULL;
	if (!rows && !words[part].none)
		return;
	text_add_char(out, '\n');
	text_add_string(&line, rows ? words[part].some : words[part].none);
	if (rows)
		text_add_char(&line, ':');
	interval_add_wrapped(out, interval, text_string(&line));
	if (rows)
		interval_add_table(out, &table, rows);
	text_clear(&line);
	if (rows < grid->row_count)
		text_add_format(&line, "and %zu more", grid->row_count - rows);
	interval_add_wrapped(out, interval, text_string(&line));
	text_done(&line);
}

/* Adds the parts. Deadlocks come first: nothing else matters then. */
void interval_add_chains(struct text *out, const struct interval *interval)
{
	part_add(out, interval, CHAIN_CYCLES);
	part_add(out, interval, CHAIN_ROOTS);
	part_add(out, interval, CHAIN_LOCKS);
	part_add(out, interval, CHAIN_QUEUES);
	part_add(out, interval, CHAIN_DEVICES);
}
