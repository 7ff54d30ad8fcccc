/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Single events for people, longest first. */
#include "report/event_list.h"
#include "render/renderer.h"

void interval_add_events(struct text *out, const struct interval *interval)
{
	size_t count = interval->events->count, rows = count;
	struct interval table = *interval;
	struct grid grid = {0};
	struct text line = {0};

	if (interval->row_limit && rows > interval->row_limit)
		rows = interval->row_limit;
	if (interval->slower_ms)
		text_add_format(&line, "slower than %lld ms: ", (long long)interval->slower_ms);
	text_add_format(&line, "%zu single event%s", count, count == 1 ? "" : "s");
	if (rows < count)
		text_add_format(&line, ", of which the longest %zu", rows);
	text_add_char(out, '\n');
	interval_add_wrapped(out, interval, text_string(&line));
	event_grid_fill(interval->events, &grid);
	table.grid = &grid;
	if (rows)
		interval_add_table(out, &table, rows);
	grid_done(&grid);
	text_done(&line);
}
