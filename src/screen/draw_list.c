/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The list that is open, in the place of the table. */
#include "screen/draw.h"
#include "screen/list.h"
#include "report/value.h"

static void draw_item(struct cells *cells, const struct layout *layout, const struct view *view,
		      const struct shown *shown, size_t item, size_t row, bool here)
{
	const struct list_kind *kind = view->list.kind;
	struct text name = {0}, help = {0};

	kind->item(view, shown, item, &name, &help);
	if (kind->marked && kind->marked(view, shown, item))
		cells_put(cells, row, 0, 1, "✓", STYLE_KEY);
	cells_put_cut(cells, row, 2, LIST_NAME_WIDTH - 3, text_string(&name), STYLE_KEY);
	cells_put_cut(cells, row, LIST_NAME_WIDTH, layout->columns - LIST_NAME_WIDTH,
		      text_string(&help), STYLE_PLAIN);
	if (here)
		cells_style(cells, row, 0, layout->columns, STYLE_CURSOR);
	if (here && kind->cursor)
		cells_style(cells, row, LIST_NAME_WIDTH + kind->cursor(view, shown), 1, STYLE_CELL);
	text_done(&name);
	text_done(&help);
}

/* Draws the line about the item under the cursor: the whole of what explains it. */
static void draw_detail(struct cells *cells, const struct layout *layout, const struct view *view,
			const struct shown *shown)
{
	const struct list_kind *kind = view->list.kind;
	size_t item = list_item_at(view, shown, view->list.at);
	struct text name = {0}, help = {0};

	if (item == SIZE_MAX)
		return;
	if (kind->detail)
		kind->detail(view, shown, item, &help);
	else
		kind->item(view, shown, item, &name, &help);
	cells_put_cut(cells, layout->cell_top, 0, layout->columns, text_string(&help), STYLE_PLAIN);
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
	view->page_rows = view->places.list_rows = rows;
	view->places.list_top = top;
	/* items may have gone */
	if (list->at >= matches)
		list->at = matches ? matches - 1 : 0;
	if (list->top > list->at)
		list->top = list->at;
	if (rows && list->at >= list->top + rows)
		list->top = list->at - rows + 1;
	text_add_format(&title, "%s (%zu)", list->kind->title, matches);
	if (list->words[0])
		text_add_format(&title, " with '%s'", list->words);
	if (list->kind->heading)
		list->kind->heading(view, shown, &title);
	cells_put_cut(cells, layout->list_title, 0, layout->columns, text_string(&title),
		      STYLE_TITLE);
	for (size_t row = 0; row < rows; row++) {
		size_t item = list_item_at(view, shown, list->top + row);

		if (item == SIZE_MAX)
			break;
		draw_item(cells, layout, view, shown, item, top + row, list->top + row == list->at);
	}
	draw_detail(cells, layout, view, shown);
	text_done(&title);
}
