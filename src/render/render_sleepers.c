/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The lines of a report that replace a table without samples: how many threads sleep, and in
 * what. */
#include "render/renderer.h"
#include "report/sleepers.h"
#include "report/value.h"

#define SLEEPERS_ROWS 5

static void add_count(struct text *line, int64_t count, const char *one, const char *more)
{
	text_add_format(line, "%lld %s", (long long)count, count == 1 ? one : more);
}

/* Adds a summary: "12 of them sleep, 3 of these are the kernel's own. Where the others sleep:" */
static void add_summary(struct text *line, const struct sleepers *sleepers)
{
	if (sleepers->filtered)
		add_count(line, sleepers->asleep, "of them sleeps", "of them sleep");
	else
		add_count(line, sleepers->asleep, "thread sleeps", "threads sleep");
	if (sleepers->kernel_asleep) {
		text_add_string(line, ", ");
		add_count(line, sleepers->kernel_asleep, "of these is the kernel's own",
			  "of these are the kernel's own");
	}
	if (sleepers->halted) {
		text_add_string(line, "; ");
		add_count(line, sleepers->halted, "is stopped or a zombie",
			  "are stopped or zombies");
	}
	text_add_char(line, '.');
	if (sleepers->grid.row_count)
		text_add_string(line, sleepers->kernel_asleep ? " Where the others sleep:"
							      : " Where they sleep:");
}

/* Adds a line about the groups that the table leaves out. */
static void add_more(struct text *line, const struct grid *grid, size_t rows)
{
	int64_t left = 0;

	for (size_t row = rows; row < grid->row_count; row++)
		left = sum(left, grid_row(grid, row)[0].number);
	if (!left)
		return;
	add_count(line, left, "more thread", "more threads");
	text_add_string(line, " in ");
	add_count(line, (int64_t)(grid->row_count - rows), "group", "groups");
	text_add_string(line, ". ");
}

static void add_groups(struct text *out, const struct interval *interval, const struct grid *grid,
		       struct text *line)
{
	size_t rows = grid->row_count < SLEEPERS_ROWS ? grid->row_count : SLEEPERS_ROWS;
	struct interval table = *interval;

	table.grid = grid;
	table.stacks = NULL;
	text_add_char(out, '\n');
	interval_add_table(out, &table, rows);
	text_clear(line);
	add_more(line, grid, rows);
	text_add_string(line,
			"-a shows threads that sleep, too; -a -g comm,why,waits_on: what each "
			"waits for.");
	interval_add_wrapped(out, interval, text_string(line));
}

void interval_add_sleepers(struct text *out, const struct interval *interval, void *state)
{
	const struct sleepers *sleepers = state;
	struct text line = {0};

	if (!interval->tally->scans) {
		interval_add_wrapped(out, interval, "No samples: there was no scan.");
		return;
	}
	if (!sleepers || !sleepers->known) {
		interval_add_wrapped(out, interval,
				     "No samples: no selected thread was active. "
				     "-a shows those that sleep, too.");
		return;
	}
	text_add_string(&line, "No samples: ");
	if (sleepers->unmet.length) {
		text_add_string(&line, text_string(&sleepers->unmet));
	} else if (sleepers->asleep || sleepers->halted) {
		text_add_string(&line, sleepers->filtered ? "no selected thread was active. "
							  : "no thread was active. ");
		add_summary(&line, sleepers);
	} else {
		text_add_string(&line, sleepers->active ? "no selected thread was active at a scan."
							: "no thread matches all conditions.");
	}
	interval_add_wrapped(out, interval, text_string(&line));
	if (!sleepers->unmet.length && sleepers->grid.row_count)
		add_groups(out, interval, &sleepers->grid, &line);
	text_done(&line);
}

static int sleepers_use(void *state, struct report *report)
{
	return report->for_people && !report->config->critical_path;
}

const struct report_part sleepers_part = {.bytes = sizeof(struct sleepers),
					  .begin = sleepers_use,
					  .end = sleepers_find,
					  .instead = interval_add_sleepers,
					  .done = sleepers_done};
