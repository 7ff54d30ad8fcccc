/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The open list, which replaces the table. */
#include "screen/draw.h"
#include "screen/list.h"
#include "report/value.h"

static void draw_item(struct cells *cells, const struct layout *layout, const struct view *view,
		      const struct shown *shown, size_t item, size_t row, bool here)
{
	const struct list_kind *kind = view->list.kind;
	size_t left = kind->wide ? 0 : LIST_NAME_WIDTH;
	struct text name = {0}, help = {0};

	kind->item(view, shown, item, &name, &help);
	if (kind->marked && kind->marked(view, shown, item))
		cells_put(cells, row, 0, 1, "✓", STYLE_KEY);
	cells_put_cut(cells, row, 2, LIST_NAME_WIDTH - 3, text_string(&name), STYLE_KEY);
	cells_put_cut(cells, row, left, layout->columns - left, text_string(&help), STYLE_PLAIN);
	if (here)
		cells_style(cells, row, 0, layout->columns, STYLE_CURSOR);
	if (here && kind->cursor)
		cells_style(cells, row, LIST_NAME_WIDTH + kind->cursor(view, shown), 1, STYLE_CELL);
	text_done(&name);
	text_done(&help);
}

void draw_list(struct cells *cells, const struct layout *layout, struct view *view,
	       const struct shown *shown)
{
	struct list *list = &view->list;
	size_t matches = list_matches(view, shown), rows = layout->list_rows;
	size_t top = layout->list_title + 1;
	struct text title = {0};

	if (list->kind->top && rows > 1) {
		list->kind->top(cells, shown, top++);
		rows--;
	}
	view->page_rows = view->positions.list_rows = rows;
	view->positions.list_top = top;
	/* leaves no blank rows below the last item of a larger screen while others are above */
	if (list->top + rows > matches)
		list->top = matches > rows ? matches - rows : 0;
	if (list->top > list->at)
		list->top = list->at;
	if (rows && list->at >= list->top + rows)
		list->top = list->at - rows + 1;
	text_add_format(&title, "%s (%zu)", list->kind->title, matches);
	if (list->words[0])
		text_add_format(&title, " with '%s'", list->words);
	if (list->kind->header)
		list->kind->header(view, shown, &title);
	cells_put_cut(cells, layout->list_title, 0, layout->columns, text_string(&title),
		      STYLE_TITLE);
	for (size_t row = 0; row < rows; row++) {
		size_t item = list_item_at(view, shown, list->top + row);

		if (item == SIZE_MAX)
			break;
		draw_item(cells, layout, view, shown, item, top + row, list->top + row == list->at);
	}
	text_done(&title);
}
