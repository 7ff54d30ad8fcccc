/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "screen/draw.h"
#include "screen/command.h"
#include "screen/list.h"
#include "screen/prompt.h"
#include "base/clock.h"
#include "report/value.h"

#include <string.h>

#define HEAD_ROWS 3

/* Number of rows that the text takes, at most `most`. */
static size_t lines_of(const char *text, size_t columns, size_t most)
{
	size_t lines = 1;

	for (text += text_fit(text, columns); *text && lines < most; lines++)
		text += text_fit(text, columns);
	return lines;
}

void draw_lines(struct cells *cells, size_t row, size_t rows, const char *text, enum style style)
{
	struct text line = {0};

	for (size_t i = 0; i < rows && *text; i++) {
		size_t fit = text_fit(text, cells->columns);

		text_clear(&line);
		text_add(&line, text, i + 1 < rows ? fit : strlen(text));
		cells_put_cut(cells, row + i, 0, cells->columns, text_string(&line), style);
		text += fit;
	}
	text_done(&line);
}

size_t draw_band_steps(size_t columns)
{
	return columns > BAND_LABEL_WIDTH ? columns - BAND_LABEL_WIDTH : 0;
}

/* Adds the whole value of the cell under the cursor. */
static void add_cell(struct text *text, const struct view *view, const struct shown *shown)
{
	const struct column *column;

	if (view->row >= shown->grid.row_count || view->column >= shown->list.count)
		return;
	column = shown->list.items[view->column];
	text_add_format(text, "%s: ", column->name);
	shown_add_value(text, column, shown_row(shown, view->row)[view->column]);
}

/* Adds keys and what they do, if there is nothing else to show. */
static void add_keys(struct text *text, const struct view *view)
{
	static const struct {
		void (*run)(struct view *view, const struct shown *shown);
		const char *words;
	} reported[] = {
		{command_keep, "keep"}, {command_exclude, "exclude"},
		{command_undo, "undo"}, {command_columns, "columns"},
		{command_sort, "sort"}, {command_filter, "filter"},
		{command_jump, "time"}, {command_help, "help"},
		{command_quit, "end"},
	};

	for (size_t i = 0; i < sizeof(reported) / sizeof(reported[0]); i++) {
		text_add_string(text, i ? "  " : "");
		add_key_of(text, view, reported[i].run);
		text_add_format(text, " %s", reported[i].words);
	}
}

/* Adds the text of the last rows: the prompt, the message, or keys. */
static void add_bottom(struct text *text, const struct view *view, enum style *style)
{
	*style = STYLE_PLAIN;
	if (view->prompt.kind) {
		text_add_string(text, view->prompt.kind->title);
		text_add_printable(text, view->prompt.text);
		return;
	}
	if (view->message[0]) {
		text_add_string(text, view->message);
		*style = view->failed ? STYLE_ALERT : STYLE_PLAIN;
		return;
	}
	if (view->list.kind)
		text_add_string(text, view->list.kind->hint);
	else
		add_keys(text, view);
	*style = STYLE_FAINT;
}

/* Height of the band in rows; a low screen has none if a list or an error needs them. */
static size_t band_rows_of(size_t rows, bool crowded)
{
	if (rows < 18)
		return crowded ? 0 : 2;
	return rows < 30 ? 3 : rows < 50 ? 5 : 8;
}

static struct layout layout_of(const struct cells *cells, const char *cell, const char *bottom,
			       const struct view *view)
{
	struct layout layout = {.rows = cells->rows, .columns = cells->columns};
	size_t most = cells->rows / 4, row = HEAD_ROWS;
	bool pointed = view->prompt.kind && view->prompt.why[0];
	bool half = view->list.kind && view->list.kind->half;

	layout.band_rows = band_rows_of(cells->rows, pointed || view->list.kind);
	layout.band_top = row;
	layout.axis_row = row += layout.band_rows;
	row += layout.band_rows ? 1 : 0;
	layout.steps_row = row++;
	layout.title_row = row++;
	layout.table_top = row;
	layout.bottom_rows = lines_of(bottom, cells->columns, most) + (pointed ? 2 : 0);
	layout.cell_rows = lines_of(cell, cells->columns, most);
	layout.bottom_top = cells->rows - layout.bottom_rows;
	layout.cell_top = layout.bottom_top - layout.cell_rows;
	layout.table_rows = layout.cell_top - row;
	layout.list_title = layout.title_row;
	layout.list_rows = layout.table_rows;
	if (half) {
		layout.table_rows = layout.table_rows / 3;
		layout.list_title = layout.table_top + layout.table_rows;
		layout.list_rows = layout.cell_top - layout.list_title - 1;
	}
	return layout;
}

/* Draws the line that is typed, with the cursor, and below it the error, with a pointer. */
static void draw_prompt(struct cells *cells, const struct layout *layout,
			const struct prompt *prompt)
{
	struct text before = {0};
	size_t title = text_width(prompt->kind->title), at, rows = layout->bottom_rows;

	text_add(&before, prompt->text, prompt->at);
	at = title + text_width(text_string(&before));
	if (at / cells->columns < rows)
		cells_style(cells, layout->bottom_top + at / cells->columns, at % cells->columns, 1,
			    STYLE_CELL);
	if (prompt->why[0] && rows > 2) {
		text_clear(&before);
		if (prompt->wrong != SIZE_MAX) {
			text_add(&before, prompt->text, strnlen(prompt->text, prompt->wrong));
			at = (title + text_width(text_string(&before))) % cells->columns;
			cells_put(cells, cells->rows - 2, at, 1, "^", STYLE_ALERT);
		}
		cells_put_cut(cells, cells->rows - 1, 0, cells->columns, prompt->why, STYLE_ALERT);
	}
	text_done(&before);
}

static void draw_bottom(struct cells *cells, const struct layout *layout, const struct view *view,
			const char *bottom, enum style style)
{
	bool pointed = view->prompt.kind && view->prompt.why[0];
	const struct prompt *prompt = &view->prompt;

	draw_lines(cells, layout->bottom_top, layout->bottom_rows - (pointed ? 2 : 0), bottom,
		   style);
	if (prompt->kind)
		draw_prompt(cells, layout, prompt);
}

/* Label of a step, from 1 on; the last one is the present question. */
static const char *step_label(const struct view *view, size_t step)
{
	return step < view->undo_count ? view->undo[step].label : view->now.label;
}

/* Draws the steps that led to this view. */
static void draw_steps(struct cells *cells, const struct layout *layout, struct view *view)
{
	struct text line = {0};
	struct positions *positions = &view->positions;
	size_t same, cut;
	const char *words;

	text_add_string(&line, "all");
	positions->steps_row = layout->steps_row;
	positions->steps[0] = text_width(text_string(&line));
	for (size_t i = 1; i <= view->undo_count; i += same) {
		const char *label = step_label(view, i);

		for (same = 1; i + same <= view->undo_count; same++)
			if (strcmp(step_label(view, i + same), label) != 0)
				break;
		text_add_format(&line, " › %s", label);
		if (same > 1)
			text_add_format(&line, " x%zu", same);
		for (size_t step = i; step < i + same; step++)
			positions->steps[step] = text_width(text_string(&line));
	}
	if (!view->undo_count && view->now.filter[0])
		text_add_format(&line, " › %s", view->now.filter);
	if (view->now.all_states)
		text_add_string(&line, " (all states)");
	/* the last steps matter most */
	words = text_string(&line);
	while (text_width(words) > layout->columns) {
		const char *next = strstr(words + 1, "› ");

		if (!next)
			break;
		words = next;
	}
	cut = text_width(text_string(&line)) - text_width(words);
	for (size_t step = 0; step <= view->undo_count; step++)
		positions->steps[step] =
			positions->steps[step] > cut ? positions->steps[step] - cut : 0;
	positions->step_count = view->undo_count + 1;
	cells_put_cut(cells, layout->steps_row, 0, layout->columns, words, STYLE_KEY);
	text_done(&line);
}

static void draw_small(struct cells *cells)
{
	struct text words = {0};

	text_add_format(&words, "tsnap --top needs %dx%d: this is %zux%zu. q ends.",
			SCREEN_COLUMNS_LEAST, SCREEN_ROWS_LEAST, cells->columns, cells->rows);
	draw_lines(cells, 0, cells->rows, text_string(&words), STYLE_PLAIN);
	text_done(&words);
}

void draw(struct cells *cells, struct view *view, const struct shown *shown)
{
	struct text cell = {0}, bottom = {0};
	struct layout layout;
	enum style style;

	cells_clear(cells, cells->rows, cells->columns);
	view->positions = (struct positions){0};
	/* rows may have gone */
	if (view->row >= shown->grid.row_count)
		view->row = shown->grid.row_count ? shown->grid.row_count - 1 : 0;
	if (cells->rows < SCREEN_ROWS_LEAST || cells->columns < SCREEN_COLUMNS_LEAST) {
		draw_small(cells);
		return;
	}
	view->positions.columns = cells->columns;
	if (view->list.kind)
		list_add_detail(&cell, view, shown);
	else
		add_cell(&cell, view, shown);
	add_bottom(&bottom, view, &style);
	layout = layout_of(cells, text_string(&cell), text_string(&bottom), view);
	draw_head(cells, &layout, view, shown);
	view->positions.band_top = layout.band_top;
	view->positions.band_rows = layout.band_rows;
	view->positions.band_left = cells->columns - shown->band.count;
	if (layout.band_rows)
		draw_band(cells, &layout, shown);
	draw_steps(cells, &layout, view);
	if (!view->list.kind || view->list.kind->half)
		draw_table(cells, &layout, view, shown);
	if (view->list.kind)
		draw_list(cells, &layout, view, shown);
	draw_lines(cells, layout.cell_top, layout.cell_rows, text_string(&cell), STYLE_PLAIN);
	draw_bottom(cells, &layout, view, text_string(&bottom), style);
	text_done(&cell);
	text_done(&bottom);
}
