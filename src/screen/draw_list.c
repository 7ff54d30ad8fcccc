/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The list that is open, in the place of the table. */
#include "screen/draw.h"
#include "screen/list.h"
#include "report/value.h"

#define NAME_MOST 26

static void draw_item(struct cells *cells, const struct layout *layout, const struct view *view,
		      const struct shown *shown, size_t item, size_t row, bool here)
{
	const struct list_kind *kind = view->list.kind;
	struct text name = {0}, help = {0};

	kind->item(view, shown, item, &name, &help);
	if (kind->marked && kind->marked(view, shown, item))
		cells_put(cells, row, 0, 1, "✓", STYLE_KEY);
	cells_put_cut(cells, row, 2, NAME_MOST - 3, text_string(&name), STYLE_KEY);
	cells_put_cut(cells, row, NAME_MOST, layout->columns - NAME_MOST, text_string(&help),
		      STYLE_PLAIN);
	if (here)
		cells_style(cells, row, 0, layout->columns, STYLE_CURSOR);
	text_done(&name);
	text_done(&help);
}

/* Which row it is, and exact times. */
static void add_peek(struct text *title, const struct view *view, const struct shown *shown)
{
	const struct measures *exact = &shown->peek.exact;
	const struct {
		const char *name;
		int64_t thousandths;
	} times[] = {{"cpu_s", exact->cpu_s},
		     {"runq_s", exact->runq_s},
		     {"dwait_s", exact->dwait_s},
		     {"sleep_s", exact->sleep_s}};

	text_add_format(title, ": %s", view->peek_title);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		if (times[i].thousandths == ABSENT)
			continue;
		text_add_format(title, "; %s ", times[i].name);
		text_add_decimals(title, times[i].thousandths, 3);
	}
}

void draw_list(struct cells *cells, const struct layout *layout, struct view *view,
	       const struct shown *shown)
{
	struct list *list = &view->list;
	size_t matches = list_matches(view, shown), rows = layout->list_rows;
	struct text title = {0};

	view->page_rows = view->places.list_rows = rows;
	view->places.list_top = layout->list_title + 1;
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
	if (list->kind == &list_peek)
		add_peek(&title, view, shown);
	cells_put_cut(cells, layout->list_title, 0, layout->columns, text_string(&title),
		      STYLE_TITLE);
	for (size_t row = 0; row < rows; row++) {
		size_t item = list_item_at(view, shown, list->top + row);

		if (item == SIZE_MAX)
			break;
		draw_item(cells, layout, view, shown, item, layout->list_title + 1 + row,
			  list->top + row == list->at);
	}
	/* the whole of what explains the item under the cursor */
	if (matches) {
		struct text name = {0}, help = {0};

		list->kind->item(view, shown, list_item_at(view, shown, list->at), &name, &help);
		cells_put_cut(cells, layout->cell_top, 0, layout->columns, text_string(&help),
			      STYLE_PLAIN);
		text_done(&name);
		text_done(&help);
	}
	text_done(&title);
}
