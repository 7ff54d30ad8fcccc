/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "screen/draw.h"
#include "base/clock.h"
#include "render/renderer.h"
#include "report/value.h"
#include "screen/command.h"
#include "screen/list.h"
#include "screen/prompt.h"

#include <string.h>

#define GAP 2 /* columns of the screen between two columns */

/* Positions of the parts, in rows of the screen from 0. */
struct layout {
	size_t rows, columns;
	size_t states_row; /* row of the threads by state; 0: a low screen has none */
	size_t missed_row; /* row of what was missed, and of the history */
	size_t findings_top, findings_rows;
	size_t band_top, band_rows; /* 0 rows: there is no band */
	size_t axis_row;	    /* row of the times, below the band */
	size_t steps_row;	    /* row of the steps that led to this view */
	size_t title_row, table_top, table_rows;
	size_t list_title, list_rows;	/* title of a list; its items are below it */
	size_t cell_top, cell_rows;	/* whole value of the cell under the cursor */
	size_t bottom_top, bottom_rows; /* message, prompt or keys */
};

/* --- the top, above the table: source, time and the band */

static const struct band_look {
	const char *sign;
	const char *name; /* of the state */
	enum style style;
} band_looks[BAND_COUNT] = {
	[BAND_ON] = {"#", " ON", STYLE_ON},
	[BAND_RQ] = {"r", " RQ", STYLE_RQ},
	[BAND_DISK] = {"D", "", STYLE_DISK},
	[BAND_WORK] = {"s", " S", STYLE_WORK},
};

static void add_duration(struct text *text, int64_t us)
{
	int64_t seconds = us / US_PER_SECOND;

	text_add_format(text, "%02lld:%02lld:%02lld", (long long)(seconds / 3600),
			(long long)(seconds / 60 % 60), (long long)(seconds % 60));
}

/* Adds the window's position in time: LIVE, FROZEN, 00:01:30 ago, END. */
static void add_position(struct text *text, const struct view *view, const struct shown *shown)
{
	int64_t behind_us =
		shown->history.last_us == ABSENT ? 0 : shown->history.last_us + 1 - shown->until_us;

	if (view->now.until_us != ABSENT) {
		text_add_string(text, "FROZEN, ");
		add_duration(text, behind_us > 0 ? behind_us : 0);
		text_add_string(text, shown->source.recording ? " before the end" : " ago");
	} else {
		text_add_string(text, shown->source.recording ? "REPLAY, END"
				      : shown->source.ended   ? "ENDED"
							      : "LIVE");
	}
}

static void add_origin(struct text *text, const struct shown *shown)
{
	const struct source_status *status = &shown->source.status;

	text_add_string(text, "tsnap");
	if (shown->source.recording) {
		text_add_string(text, ", replay of ");
		text_add_printable(text, shown->source.recording);
	}
	if (status->host[0]) {
		text_add_string(text, " on ");
		text_add_printable(text, status->host);
	}
	if (status->kernel[0]) {
		text_add_string(text, ", Linux ");
		text_add_printable(text, status->kernel);
	}
	if (status->cpus != ABSENT && status->cpus)
		text_add_format(text, ", %lld CPU%s", (long long)status->cpus,
				status->cpus == 1 ? "" : "s");
}

/* Average number of threads, in hundredths. */
static int64_t average_of(const struct tally *tally)
{
	return tally_avg_thr(tally, tally->shared_us ? tally->shared_us : tally->samples);
}

/* "2026-11-20 20:42:53.000 to 20:42:58.000 CET, 5.00 s: avg_thr 2.50, 100 scans" */
static void add_window(struct text *text, const struct shown *shown, bool dated)
{
	const struct tally *tally = &shown->tally;
	char from[CLOCK_LOCAL_SIZE], until[CLOCK_LOCAL_SIZE];

	if (!tally->scans) {
		text_add_string(text, shown->history.first_us == ABSENT
					      ? "There is no scan yet"
					      : "There is no scan in this window");
		return;
	}
	clock_format_local(tally->from_us, from);
	clock_format_local(tally->until_us, until);
	if (dated)
		text_add_format(text, "%.10s ", from);
	text_add_format(text, "%.12s to %.12s %s, ", from + CLOCK_LOCAL_TIME,
			until + CLOCK_LOCAL_TIME, until + CLOCK_LOCAL_ZONE);
	text_add_decimals(text, ratio(tally->elapsed_us, 100, US_PER_SECOND), 2);
	text_add_string(text, " s: avg_thr ");
	text_add_decimals(text, average_of(tally), 2);
	text_add_format(text, ", %lld scan%s", (long long)tally->scans,
			tally->scans == 1 ? "" : "s");
}

/* Sums all rows of missed that have this row's text up to a reason in brackets; 0: an earlier row
 * has the sum. */
static uint64_t missed_count(const struct source_status *status, size_t at)
{
	size_t length = strcspn(status->missed[at].what, "(");
	uint64_t count = 0;

	for (size_t i = 0; i < status->missed_count; i++) {
		if (status->missed[i].natural ||
		    strncmp(status->missed[i].what, status->missed[at].what, length) != 0)
			continue;
		if (i < at)
			return 0;
		count += status->missed[i].count;
	}
	return count;
}

/* Adds that the clock was set in the window, and counts of what was missed since the start. */
static void add_missed(struct text *text, const struct shown *shown)
{
	const struct source_status *status = &shown->source.status;
	const char *before = "Missed: ";

	if (shown->tally.clock_steps) {
		text_add_string(text, "Note: ");
		clock_step_add(text, shown->tally.clock_step_us, shown->tally.clock_stepped_us,
			       shown->source.recording);
		before = "; missed: ";
	}

	if (shown->groups.refused) {
		text_add_format(text, "%s%lld samples dropped: more groups than tsnap keeps",
				before, (long long)shown->groups.refused);
		before = "; ";
	}
	for (size_t i = 0; i < status->missed_count; i++) {
		struct source_missed missed = status->missed[i];
		size_t begin;
		char *bracket;

		missed.count = missed_count(status, i);
		if (!missed.count)
			continue;
		text_add_string(text, before);
		begin = text->length;
		missed_add(text, &missed);
		bracket = strstr(text_string(text) + begin, " (");
		if (bracket)
			text_end(text, bracket);
		before = "; ";
	}
}

static void add_history(struct text *text, const struct shown *shown)
{
	const struct history_view *history = &shown->history;
	char from[CLOCK_LOCAL_SIZE], until[CLOCK_LOCAL_SIZE];

	if (history->first_us == ABSENT)
		return;
	if (shown->marked.scans) {
		clock_format_local(shown->marked.from_us, from);
		clock_format_local(shown->marked.until_us, until);
		text_add_format(text, "Minus %.12s to %.12s: avg_thr ", from + CLOCK_LOCAL_TIME,
				until + CLOCK_LOCAL_TIME);
		text_add_decimals(text, average_of(&shown->marked), 2);
		text_add_string(text, ". ");
	}
	if (shown->tally.samples)
		text_add_string(text, !shown->tally.shared_us ? "Times by samples. "
				      : shown->times.shared >> TIME_ASLEEP & 1
					      ? "Times are exact. "
					      : "Times are exact, of S by samples. ");
	text_add_string(text, "History: ");
	add_duration(text, history->last_us - history->first_us);
	text_add_format(text, ", %llu scans", (unsigned long long)history->scan_count);
	if (history->thinned_scans)
		text_add_format(text, " (of older ones 1 a second: %llu left out)",
				(unsigned long long)history->thinned_scans);
	if (history->dropped_scans)
		text_add_format(text, " (%llu older ones dropped%s)",
				(unsigned long long)history->dropped_scans,
				history->dropped_memory ? ": memory is full" : "");
	if (shown->source.own_cpu != ABSENT) {
		text_add_string(text, "; tsnap itself: ");
		text_add_decimals(text, shown->source.own_cpu, 2);
		text_add_string(text, " % of a CPU");
	}
}

/* Draws how many threads of the whole host were in each state, with the signs of the band:
 * "# ON 1.90 of 2 CPUs  r RQ 3.00  D 1.20  s S 16.10  load 14.20" */
static void draw_states(struct cells *cells, const struct layout *layout, const struct view *view,
			const struct shown *shown)
{
	const struct source_status *status = &shown->source.status;
	size_t left = 0, row = layout->states_row;
	struct text words = {0};

	for (int part = 0; part < BAND_COUNT && shown->states.scans; part++) {
		text_clear(&words);
		text_add_format(&words, "%s%s ", band_looks[part].sign, band_looks[part].name);
		text_add_decimals(&words,
				  ratio(shown->states.threads[part], 100, shown->states.scans), 2);
		if (part == BAND_ON && status->cpus != ABSENT && status->cpus)
			text_add_format(&words, " of %lld CPU%s", (long long)status->cpus,
					status->cpus == 1 ? "" : "s");
		cells_put_cut(cells, row, left, layout->columns - left, text_string(&words),
			      STYLE_PLAIN);
		cells_style(cells, row, left, 1, band_looks[part].style);
		left += text_width(text_string(&words)) + GAP;
	}
	if (status->load != ABSENT && view->now.until_us == ABSENT) {
		text_clear(&words);
		text_add_string(&words, "load ");
		text_add_decimals(&words, status->load, 2);
		cells_put_cut(cells, row, left, layout->columns - left, text_string(&words),
			      STYLE_PLAIN);
	}
	text_done(&words);
}

static void draw_head(struct cells *cells, const struct layout *layout, const struct view *view,
		      const struct shown *shown)
{
	size_t columns = layout->columns, width;
	struct text line = {0}, position = {0};

	add_position(&position, view, shown);
	width = text_width(text_string(&position));
	add_origin(&line, shown);
	cells_put_cut(cells, 0, 0, columns - width - 1, text_string(&line), STYLE_TITLE);
	cells_put_right(cells, 0, columns - width, width, text_string(&position), STYLE_KEY);
	text_clear(&line);
	add_window(&line, shown, true);
	if (text_width(text_string(&line)) > columns) { /* avg_thr matters more than the date */
		text_clear(&line);
		add_window(&line, shown, false);
	}
	cells_put_cut(cells, 1, 0, columns, text_string(&line), STYLE_PLAIN);
	if (layout->states_row)
		draw_states(cells, layout, view, shown);
	text_clear(&line);
	text_add_string(&line, shown->source.error);
	if (!line.length)
		add_missed(&line, shown);
	width = 0;
	if (line.length) {
		width = text_width(text_string(&line)) + 2;
		cells_put_cut(cells, layout->missed_row, 0, columns, text_string(&line),
			      STYLE_ALERT);
	}
	text_clear(&line);
	add_history(&line, shown);
	if (width < columns)
		cells_put_cut(cells, layout->missed_row, width, columns - width, text_string(&line),
			      STYLE_FAINT);
	text_done(&line);
	text_done(&position);
}

/* Draws the first findings, and how many more there are. */
static void draw_findings(struct cells *cells, const struct layout *layout, const struct view *view,
			  const struct shown *shown)
{
	size_t more = shown->findings.count - layout->findings_rows, width = 0;
	struct text line = {0};

	for (size_t i = 0; i < layout->findings_rows; i++) {
		bool last = i + 1 == layout->findings_rows;

		text_clear(&line);
		if (last && more) {
			text_add_string(&line, " ");
			add_key_of(&line, view, command_findings);
			text_add_format(&line, ": %zu more", more);
			width = text_width(text_string(&line));
			cells_put_right(cells, layout->findings_top + i, layout->columns - width,
					width, text_string(&line), STYLE_FAINT);
			text_clear(&line);
		}
		text_add_format(&line, "%zu. %s", i + 1, shown->findings.items[i].sentence);
		cells_put_cut(cells, layout->findings_top + i, 0, layout->columns - width,
			      text_string(&line), STYLE_KEY);
	}
	text_done(&line);
}

/* Average number of threads in a step, in hundredths. */
static int64_t step_total(const struct band_step *step)
{
	int64_t total = 0;

	for (int part = 0; part < BAND_COUNT; part++)
		total += step->threads[part];
	return ratio(total, 100, step->scans);
}

/* The part of the step's bar at that height, in hundredths of threads; BAND_COUNT: the bar is
 * lower. */
static int part_at(const struct band_step *step, int64_t height)
{
	int64_t total = 0;

	for (int part = 0; part < BAND_COUNT; part++) {
		total += ratio(step->threads[part], 100, step->scans);
		if (total > height)
			return part;
	}
	return BAND_COUNT;
}

static void draw_axis(struct cells *cells, const struct layout *layout, const struct shown *shown)
{
	const struct band *band = &shown->band;
	size_t left = layout->columns - band->count;
	struct text step = {0};

	for (size_t i = 0; i < band->count; i++) {
		int64_t from_us = band->from_us + (int64_t)i * band->step_us;

		if (from_us < shown->until_us && from_us + band->step_us > shown->from_us)
			cells_put(cells, layout->axis_row, left + i, 1, "^", STYLE_KEY);
	}
	text_add_format(&step, "%g s", (double)band->step_us / US_PER_SECOND);
	cells_put_cut(cells, layout->axis_row, 0, left - 1, text_string(&step), STYLE_FAINT);
	text_done(&step);
}

static void draw_band(struct cells *cells, const struct layout *layout, const struct shown *shown)
{
	const struct band *band = &shown->band;
	int64_t cpus = shown->source.status.cpus == ABSENT ? 0 : shown->source.status.cpus * 100;
	int64_t most = cpus > 100 ? cpus : 100;
	size_t left = layout->columns - band->count;
	struct text label = {0};

	for (size_t i = 0; i < band->count; i++)
		if (step_total(&band->steps[i]) > most)
			most = step_total(&band->steps[i]);
	if (!band->count)
		return;
	for (size_t row = 0; row < layout->band_rows; row++) {
		size_t up = layout->band_rows - 1 - row;
		int64_t low = most * (int64_t)up / (int64_t)layout->band_rows;
		int64_t high = most * (int64_t)(up + 1) / (int64_t)layout->band_rows;
		bool line = cpus > low && cpus <= high;

		for (size_t i = 0; i < band->count; i++) {
			int part = part_at(&band->steps[i], (low + high) / 2);

			/* shows a mark for a small number: it is not 0 */
			if (part == BAND_COUNT && !up)
				part = part_at(&band->steps[i], 0);
			if (part < BAND_COUNT)
				cells_put(cells, layout->band_top + row, left + i, 1,
					  band_looks[part].sign, band_looks[part].style);
			else if (line)
				cells_put(cells, layout->band_top + row, left + i, 1, "-",
					  STYLE_FAINT);
		}
	}
	text_add_decimals(&label, ratio(most, 1, 10), 1);
	cells_put_right(cells, layout->band_top, 0, left - 1, text_string(&label), STYLE_FAINT);
	text_done(&label);
	draw_axis(cells, layout, shown);
}

/* --- the table */

#define WIDTH_MOST 44 /* greatest width of a text column, unless the screen has columns left */
#define BAR_WIDTH 10

/* Width of the column in screen columns, for the rows that are drawn. */
static size_t width_of(const struct view *view, const struct shown *shown, size_t at, size_t rows)
{
	const struct column *column = shown->list.items[at];
	size_t width = text_width(column->title) + (view->now.sort == column);
	struct text cell = {0};

	if (width < (size_t)column->width)
		width = (size_t)column->width;
	for (size_t row = view->top; row < shown->grid.row_count && row < view->top + rows; row++) {
		size_t wide;

		text_clear(&cell);
		shown_add_value(&cell, column, shown_row(shown, row)[at]);
		wide = text_width(text_string(&cell));
		if (wide > width)
			width = wide;
	}
	text_done(&cell);
	if (column->kind == KIND_TEXT && width > WIDTH_MOST)
		width = WIDTH_MOST;
	if (column->kind == KIND_PERMILLE)
		width += 1 + BAR_WIDTH;
	return width;
}

static void draw_share(struct cells *cells, size_t row, size_t left, size_t width,
		       const char *words, int64_t permille, enum style style)
{
	size_t number = width > BAR_WIDTH + 1 ? width - BAR_WIDTH - 1 : width;
	int64_t marks = permille == ABSENT ? 0 : (permille * BAR_WIDTH + 999) / 1000;

	cells_put_right(cells, row, left, number, words, style);
	for (int64_t i = 0; i < marks && number + 1 + (size_t)i < width; i++)
		cells_put(cells, row, left + number + 1 + (size_t)i, 1, "#", style);
}

static void draw_cell(struct cells *cells, size_t row, size_t left, size_t width,
		      const struct column *column, union value value, enum style style)
{
	struct text words = {0};

	shown_add_value(&words, column, value);
	if (column->kind == KIND_PERMILLE)
		draw_share(cells, row, left, width, text_string(&words), value.number, style);
	else if (column_is_text(column))
		cells_put_cut(cells, row, left, width, text_string(&words), style);
	else
		cells_put_right(cells, row, left, width, text_string(&words), style);
	text_done(&words);
}

static void draw_title(struct cells *cells, const struct layout *layout, const struct view *view,
		       const struct column *column, size_t left, size_t width)
{
	struct text title = {0};

	text_add_string(&title, column->title);
	if (view->now.sort == column)
		text_add_string(&title, view->now.reversed ? "▲" : "▼");
	if (column_is_text(column) || column->kind == KIND_PERMILLE)
		cells_put_cut(cells, layout->title_row, left, width, text_string(&title),
			      STYLE_TITLE);
	else
		cells_put_right(cells, layout->title_row, left, width, text_string(&title),
				STYLE_TITLE);
	text_done(&title);
}

/* Sum of the screen columns that a range of the table's columns takes. */
static size_t widths_sum(const size_t *widths, size_t from, size_t to)
{
	size_t taken = 0;

	for (size_t i = from; i <= to; i++)
		taken += widths[i] + (i > from ? GAP : 0);
	return taken;
}

/* Brings the cursor into sight, and leaves no columns unused at the right. */
static void scroll(struct view *view, const struct layout *layout, const size_t *widths,
		   size_t count)
{
	if (view->left > view->column)
		view->left = view->column;
	while (view->left < view->column &&
	       widths_sum(widths, view->left, view->column) > layout->columns)
		view->left++;
	while (view->left && widths_sum(widths, view->left - 1, count - 1) <= layout->columns)
		view->left--;
}

/* Explains why there are no rows. */
static void draw_nothing(struct cells *cells, const struct layout *layout, const struct view *view,
			 const struct shown *shown)
{
	struct text words = {0};

	if (!shown->tally.scans) {
		text_add_string(&words, "No scan is in this window: ");
		add_key_of(&words, view, command_now);
		text_add_string(&words, " goes to the newest one");
	} else if (view->now.filter[0]) {
		text_add_string(&words, "No sample fits the filter: ");
		add_key_of(&words, view, command_undo);
		text_add_string(&words, " undoes the last step, ");
		add_key_of(&words, view, command_filter);
		text_add_string(&words, " edits it");
	} else if (!view->now.all_states) {
		text_add_string(&words, "No thread is active in this window: ");
		add_key_of(&words, view, command_all_states);
		text_add_string(&words, " shows all states");
	} else {
		text_add_string(&words, "No thread is in this window");
	}
	cells_put_cut(cells, layout->table_top + 1, 2, layout->columns - 2, text_string(&words),
		      STYLE_PLAIN);
	text_done(&words);
}

/* Style of a cell: in a difference, numbers that grew and numbers that shrank have their own. */
static enum style style_of(const struct shown *shown, size_t at, size_t row)
{
	const struct column *column = shown->list.items[at];
	int64_t number = shown_row(shown, row)[at].number;

	if (!shown->marked.scans || column->role != ROLE_MEASURE || number == ABSENT || !number)
		return STYLE_PLAIN;
	return number > 0 ? STYLE_MORE : STYLE_LESS;
}

static void draw_table(struct cells *cells, const struct layout *layout, struct view *view,
		       const struct shown *shown)
{
	size_t widths[COLUMN_LIST_MAX], rows = layout->table_rows, left = 0;

	view->page_rows = rows;
	/* leaves no blank rows below the last row of a larger screen while others are above */
	if (view->top + rows > shown->grid.row_count)
		view->top = shown->grid.row_count > rows ? shown->grid.row_count - rows : 0;
	if (view->top > view->row)
		view->top = view->row;
	if (rows && view->row >= view->top + rows)
		view->top = view->row - rows + 1;
	for (size_t i = 0; i < shown->list.count; i++)
		widths[i] = width_of(view, shown, i, rows);
	scroll(view, layout, widths, shown->list.count);
	view->positions.title_row = layout->title_row;
	view->positions.table_top = layout->table_top;
	view->positions.table_rows = rows;
	view->positions.first = view->left;
	for (size_t i = view->left; i < shown->list.count && left < layout->columns; i++) {
		size_t width = widths[i], free_width = layout->columns - left;

		/* a number that was cut would be another number */
		if (width > free_width && left && !column_is_text(shown->list.items[i]))
			break;
		if (width > free_width)
			width = free_width;
		draw_title(cells, layout, view, shown->list.items[i], left, width);
		for (size_t row = 0; row < rows && view->top + row < shown->grid.row_count; row++)
			draw_cell(cells, layout->table_top + row, left, width, shown->list.items[i],
				  shown_row(shown, view->top + row)[i],
				  style_of(shown, i, view->top + row));
		if (shown->grid.row_count && rows) {
			size_t at = layout->table_top + view->row - view->top;

			cells_style(cells, at, left, width + GAP, STYLE_CURSOR);
			if (i == view->column)
				cells_style(cells, at, left, width, STYLE_CELL);
		}
		view->positions.lefts[view->positions.count++] = left;
		left += width + GAP;
	}
	if (!shown->grid.row_count)
		draw_nothing(cells, layout, view, shown);
}

/* --- the open list, which replaces the table */

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

static void draw_list(struct cells *cells, const struct layout *layout, struct view *view,
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
	if (list->words[0] || list->typing)
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

/* --- all */

/* Number of rows that the text takes, at most `most`. */
static size_t lines_of(const char *text, size_t columns, size_t most)
{
	size_t lines = 1;

	for (text += text_fit(text, columns); *text && lines < most; lines++)
		text += text_fit(text, columns);
	return lines;
}

/* Writes the text into rows of the screen, broken where necessary. */
static void draw_lines(struct cells *cells, size_t row, size_t rows, const char *text,
		       enum style style)
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
		command_run *run;
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

/* Number of findings that are drawn: a low screen has none. */
static size_t finding_rows_of(size_t rows, const struct shown *shown, bool crowded)
{
	size_t most = rows < 24 || crowded ? 0 : rows < 30 ? 1 : rows < 50 ? 2 : 4;

	return shown->findings.count < most ? shown->findings.count : most;
}

static struct layout layout_of(const struct cells *cells, const char *cell, const char *bottom,
			       const struct view *view, const struct shown *shown)
{
	bool low = cells->rows < 18;
	struct layout layout = {.rows = cells->rows,
				.columns = cells->columns,
				.states_row = low ? 0 : 2,
				.missed_row = low ? 2 : 3};
	size_t most = cells->rows / 4, row = layout.missed_row + 1;
	bool pointed = view->prompt.kind && view->prompt.why[0];
	bool half = view->list.kind && view->list.kind->half;

	layout.findings_top = row;
	layout.findings_rows = finding_rows_of(cells->rows, shown, pointed);
	row += layout.findings_rows;
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
		/* without a place it is no error, but what the word may become */
		if (prompt->wrong != SIZE_MAX) {
			text_add(&before, prompt->text, strnlen(prompt->text, prompt->wrong));
			at = (title + text_width(text_string(&before))) % cells->columns;
			cells_put(cells, cells->rows - 2, at, 1, "^", STYLE_ALERT);
		}
		cells_put_cut(cells, cells->rows - 1, 0, cells->columns, prompt->why,
			      prompt->wrong == SIZE_MAX ? STYLE_PLAIN : STYLE_ALERT);
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
	layout = layout_of(cells, text_string(&cell), text_string(&bottom), view, shown);
	draw_head(cells, &layout, view, shown);
	draw_findings(cells, &layout, view, shown);
	view->positions.findings_top = layout.findings_top;
	view->positions.findings_rows = layout.findings_rows;
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
