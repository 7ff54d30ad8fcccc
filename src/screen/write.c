/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "screen/write.h"
#include "base/output_file.h"
#include "render/renderer.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* The rows as the table has them. */
static void csv_add(struct text *text, const struct shown *shown)
{
	const struct renderer *csv = renderer_find("csv");
	struct grid sorted = {0};

	grid_size(&sorted, &shown->list, shown->grid.row_count);
	for (size_t row = 0; row < sorted.row_count; row++)
		memcpy(sorted.values + row * shown->list.count, shown_row(shown, row),
		       shown->list.count * sizeof(union value));
	csv->begin(text, &shown->list);
	csv->add(text, &(struct page){.grid = &sorted});
	grid_done(&sorted);
}

void write_view(struct view *view, const struct shown *shown, const struct cells *cells)
{
	struct text text = {0};
	int err = 0;

	if (!access(view->path, F_OK)) {
		view_say(view, true, "%s is there already: another name, please", view->path);
		return;
	}
	if (view->write == WRITE_CSV)
		csv_add(&text, shown);
	else
		cells_text(cells, &text);
	err = output_replace(view->path, text_string(&text), text.length);
	if (err)
		view_say(view, true, "%s: %s", view->path, output_error(err));
	else
		view_say(view, false, "Written: %s", view->path);
	text_done(&text);
}
