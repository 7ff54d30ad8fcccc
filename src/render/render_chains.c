/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tables that --chains adds to a report, one for each of its parts, and a sentence about each. */
#include "report/chain_report.h"
#include "render/renderer.h"
#include "report/report.h"
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

static void part_add(struct text *out, const struct interval *interval,
		     const struct chain_report *chains, enum chain_part part)
{
	const struct grid *grid = &chains->grids[part];
	size_t rows = grid->row_count < ROWS_MAX ? grid->row_count : ROWS_MAX;
	struct interval table = *interval;
	struct text line = {0};

	table.grid = grid;
	table.stacks = part == CHAIN_ROOTS ? &chains->stacks : NULL;
	if (!rows)
		return;
	text_add_char(out, '\n');
	interval_add_wrapped(out, interval, words[part]);
	interval_add_table(out, &table, rows);
	if (rows < grid->row_count)
		text_add_format(&line, "and %zu more", grid->row_count - rows);
	interval_add_line(out, interval, &line);
}

/* Adds a line for each port whose requests nobody reads: their wait is no thread's here. */
static void unread_add(struct text *out, const struct interval *interval)
{
	const struct source_status *status = interval->status;
	struct text line = {0};

	for (size_t i = 0; status && i < status->unread_count; i++) {
		text_add_string(out, i ? "" : "\n");
		text_add_unread(&line, &status->unread[i]);
		text_add_char(&line, '.');
		interval_add_line(out, interval, &line);
	}
}

/* Says why there are no tables, or what they lack. */
static void add_lack(struct text *out, const struct interval *interval,
		     const struct column_list *unrecorded, bool tables)
{
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
	interval_add_line(out, interval, &line);
}

/* Adds the parts. Deadlocks come first: nothing else matters then. */
static void interval_add_chains(struct text *out, const struct interval *interval, void *state)
{
	const struct chain_report *chains = state;
	static const enum chain_part parts[] = {CHAIN_CYCLES, CHAIN_ROOTS, CHAIN_LOCKS,
						CHAIN_QUEUES, CHAIN_DEVICES};
	bool tables = false;

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
		part_add(out, interval, chains, parts[i]);
		tables |= chains->grids[parts[i]].row_count > 0;
	}
	unread_add(out, interval);
	add_lack(out, interval, &chains->unrecorded, tables);
}

static int chains_begin(void *state, struct report *report)
{
	if (report->config->chains)
		chain_report_init(state, (size_t)report->config->stacks, &report->times);
	return report->config->chains;
}

static bool chains_take(void *state, struct report *report, const struct scan *batch)
{
	chain_report_note(state, batch);
	return false;
}

static int chains_collect(void *state, struct report *report, bool all)
{
	if (!all)
		chain_report_end_scan(state);
	return 0;
}

static void chains_end(void *state, struct report *report)
{
	struct chain_report *chains = state;

	chain_report_fill(chains, &report->tally);
	report_lacks(report, &chains->needed, &chains->unrecorded);
	report_miss(report, "samples dropped: more roots or locks than --chains keeps",
		    chains->refused);
}

const struct report_part chains_part = {.bytes = sizeof(struct chain_report),
					.begin = chains_begin,
					.needs = chain_report_needs,
					.take = chains_take,
					.add = chain_report_add,
					.collect = chains_collect,
					.end = chains_end,
					.below = interval_add_chains,
					.clear = chain_report_clear,
					.done = chain_report_done};
