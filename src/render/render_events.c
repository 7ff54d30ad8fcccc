/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Single events for people: what took longest first. */
#include "report/event_list.h"
#include "render/renderer.h"

void page_add_events(struct text *out, const struct page *page)
{
	size_t count = page->events->count, rows = count;
	struct page table = *page;
	struct grid grid = {0};
	struct text line = {0};

	if (page->row_limit && rows > page->row_limit)
		rows = page->row_limit;
	if (page->slower_ms)
		text_add_format(&line, "slower than %lld ms: ", (long long)page->slower_ms);
	text_add_format(&line, "%zu single event%s", count, count == 1 ? "" : "s");
	if (rows < count)
		text_add_format(&line, ", of which the longest %zu", rows);
	text_add_char(out, '\n');
	page_add_wrapped(out, page, text_string(&line));
	event_grid_fill(page->events, &grid);
	table.grid = &grid;
	if (rows)
		page_add_table(out, &table, rows);
	grid_done(&grid);
	text_done(&line);
}
