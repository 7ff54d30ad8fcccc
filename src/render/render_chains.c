/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables that --chains adds to a report, one for each of its parts, and a sentence about each. */
#include "report/chain_report.h"
#include "render/renderer.h"
#include "report/value.h"

#define ROWS_MAX 10

/* Sentences above the tables. */
static const char *const words[CHAIN_PARTS] = {
	[CHAIN_ROOTS] = "Who others wait for in the end: seconds that they waited, how many at a "
			"time, and what the root did meanwhile, in percent (T: stopped):",
	[CHAIN_LOCKS] = "Locks that were waited for: seconds, how many threads at a time, the "
			"longest wait, and how often a scan saw another holder than the one "
			"before:",
	[CHAIN_QUEUES] = "Who waited for a CPU (COMM), and who was on it:",
	[CHAIN_DEVICES] = "Who waited for a block device (COMM), and which other processes had "
			  "requests in flight there:",
	[CHAIN_CYCLES] = "Threads that wait for each other. DEADLOCK: for ever:",
};

static void part_add(struct text *out, const struct interval *interval, enum chain_part part)
{
	const struct grid *grid = &interval->chains->grids[part];
	size_t rows = grid->row_count < ROWS_MAX ? grid->row_count : ROWS_MAX;
	struct interval table = *interval;
	struct text line = {0};

	table.grid = grid;
	table.stacks = part == CHAIN_ROOTS ? &interval->chains->stacks : NULL;
	if (!rows)
		return;
	text_add_char(out, '\n');
	interval_add_wrapped(out, interval, words[part]);
	interval_add_table(out, &table, rows);
	if (rows < grid->row_count)
		text_add_format(&line, "and %zu more", grid->row_count - rows);
	interval_add_wrapped(out, interval, text_string(&line));
	text_done(&line);
}

/* Says why there are no tables, or what they lack. */
static void add_lack(struct text *out, const struct interval *interval, bool tables)
{
	const struct column_list *unrecorded = &interval->chains->unrecorded;
	struct text line = {0};

	if (unrecorded->count) {
		text_add_string(&line, "The recording lacks columns that --chains needs: ");
		unrecorded_add(&line, unrecorded, "chains");
	} else if (!tables) {
		text_add_string(&line, "No thread is known to have waited for another one.");
	} else {
		return;
	}
	text_add_char(out, '\n');
	interval_add_wrapped(out, interval, text_string(&line));
	text_done(&line);
}

/* Adds the parts. Deadlocks come first: nothing else matters then. */
void interval_add_chains(struct text *out, const struct interval *interval)
{
	static const enum chain_part parts[] = {CHAIN_CYCLES, CHAIN_ROOTS, CHAIN_LOCKS,
						CHAIN_QUEUES, CHAIN_DEVICES};
	bool tables = false;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		part_add(out, interval, parts[i]);
		tables |= interval->chains->grids[parts[i]].row_count > 0;
	}
	add_lack(out, interval, tables);
}
