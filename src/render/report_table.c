/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A grid for people: titles and rows in columns that fit the width of a line. */
#include "render/renderer.h"
#include "report/value.h"

#include <string.h>

#define BOLD "\033[1m"
#define PLAIN "\033[0m"
#define COLOUR_BAR "\033[36m"
#define GAP 2 /* spaces between columns */
#define BAR_WIDTH 10
#define BAR_REPORT_WIDTH 80 /* least width of a line that has bars */
#define TEXT_WIDTH_LEAST 8  /* least width to which a text column is cut */
#define THREADS_MANY 1000   /* hundredths, from which on threads have one decimal */
#define ELLIPSIS "…"

/* Writes a share and its bar: "  4.5% #         " */
static void share_write(struct text *cell, int64_t permille, bool bar)
{
	struct text number = {0};
	size_t marks = (size_t)(permille * BAR_WIDTH + 999) / 1000; /* any share has a mark */

	text_add_decimals(&number, permille, 1);
	text_add_spaces(cell, number.length < 5 ? 5 - number.length : 0);
	text_add(cell, number.bytes, number.length);
	text_add_char(cell, '%');
	if (bar) {
		text_add_char(cell, ' ');
		for (size_t i = 0; i < BAR_WIDTH; i++)
			text_add_char(cell, i < marks ? '#' : ' ');
	}
	text_done(&number);
}

/* How the table is laid out. */
struct layout {
	const struct interval *interval;
	size_t widths[COLUMN_LIST_MAX];
	size_t columns;	      /* columns that fit into the line */
	bool bars;	      /* shares have bars */
	int threads_decimals; /* of KIND_THREADS */
};

/* True if shares have bars: the table has one column of shares, and space for bars. */
static bool has_bars(const struct interval *interval)
{
	const struct column_list *list = interval->grid->list;
	size_t shares = 0;

	for (size_t i = 0; i < list->count; i++)
		shares += list->items[i]->kind == KIND_PERMILLE;
	return shares == 1 && (!interval->width || interval->width >= BAR_REPORT_WIDTH);
}

/* Decimals of numbers of threads: one where a row has ten or more. */
static int threads_decimals(const struct interval *interval, size_t rows)
{
	const struct column_list *list = interval->grid->list;

	for (size_t i = 0; i < list->count; i++)
		for (size_t row = 0; row < rows && list->items[i]->kind == KIND_THREADS; row++)
			if (grid_row(interval->grid, row)[i].number >= THREADS_MANY)
				return 1;
	return 2;
}

static void threads_write(struct text *cell, int64_t hundredths, int decimals)
{
	if (!hundredths)
		text_add_string(cell, ABSENT_TEXT);
	else
		text_add_decimals(cell, decimals == 1 ? ratio(hundredths, 1, 10) : hundredths,
				  decimals);
}

/* Writes the text of a cell, without padding. */
static void cell_write(struct text *cell, const struct layout *layout, const struct column *column,
		       union value value)
{
	text_clear(cell);
	if (value_is_absent(column, value))
		text_add_string(cell, ABSENT_TEXT);
	else if (column->kind == KIND_PERMILLE)
		share_write(cell, value.number, layout->bars);
	else if (column->kind == KIND_THREADS)
		threads_write(cell, value.number, layout->threads_decimals);
	else if (column->kind == KIND_NS)
		text_add_duration(cell, value.number);
	else
		value_add(cell, column, value);
}

/* True for text, and for a share because of its bar. */
static bool aligned_left(const struct layout *layout, const struct column *column)
{
	return column_is_text(column) || (column->kind == KIND_PERMILLE && layout->bars);
}

/* Width that a text column keeps when others are left out instead. */
static size_t least_width(const struct column *column)
{
	return column->role == ROLE_MEASURE ? (size_t)column->width : TEXT_WIDTH_LEAST;
}

/* The widest of the columns that can be cut. */
static size_t *widest(struct layout *layout)
{
	const struct column_list *list = layout->interval->grid->list;
	size_t *found = NULL;

	for (size_t i = 0; i < layout->columns; i++)
		if (list->items[i]->kind == KIND_TEXT &&
		    layout->widths[i] > least_width(list->items[i]) &&
		    (!found || layout->widths[i] >= *found))
			found = &layout->widths[i];
	return found;
}

static size_t width_of(const struct layout *layout)
{
	size_t total = 0;

	for (size_t i = 0; i < layout->columns; i++)
		total += layout->widths[i] + (i ? GAP : 0);
	return total;
}

/* Cuts texts so that all columns fit, or leaves out the last column. */
static void columns_fit(struct layout *layout, size_t width)
{
	size_t whole[COLUMN_LIST_MAX], *cut;

	memcpy(whole, layout->widths, sizeof(whole));
	while (width_of(layout) > width) {
		cut = widest(layout);
		if (cut) {
			--*cut;
		} else if (layout->columns > 1) {
			layout->columns--;
			memcpy(layout->widths, whole, sizeof(whole));
		} else {
			break;
		}
	}
}

static void layout_find(struct layout *layout, const struct interval *interval, size_t rows)
{
	const struct column_list *list = interval->grid->list;
	struct text cell = {0};

	*layout = (struct layout){
		.interval = interval,
		.columns = list->count,
		.bars = has_bars(interval),
		.threads_decimals = threads_decimals(interval, rows),
	};
	for (size_t i = 0; i < list->count; i++) {
		size_t *width = &layout->widths[i];

		*width = text_width(list->items[i]->title);
		if (*width < (size_t)list->items[i]->width)
			*width = (size_t)list->items[i]->width;
		for (size_t row = 0; row < rows; row++) {
			cell_write(&cell, layout, list->items[i], grid_row(interval->grid, row)[i]);
			if (text_width(text_string(&cell)) > *width)
				*width = text_width(text_string(&cell));
		}
	}
	if (interval->width)
		columns_fit(layout, interval->width);
	text_done(&cell);
}

/* Adds the beginning and the end of a cell that does not fit: paths and commands differ in both. */
static void add_shortened(struct text *line, const char *cell, size_t width)
{
	size_t tail = (width - 1) / 2;
	const char *end = cell + text_fit(cell, text_width(cell) - tail);

	/* skip to the start of a character, and past a wide one that does not fit */
	while ((*end & 0xc0) == 0x80 || text_width(end) > tail)
		end++;
	text_add(line, cell, text_fit(cell, width - 1 - tail));
	text_add_string(line, ELLIPSIS);
	text_add_string(line, end);
}

static void add_cell(struct text *line, const char *cell, size_t width, bool left, bool last)
{
	size_t taken = text_width(cell);

	if (taken > width) {
		size_t start = line->length;

		add_shortened(line, cell, width);
		/* a wide character may be more than the space that was left */
		if (!last)
			text_add_spaces(line, width - text_width(line->bytes + start));
		return;
	}
	if (!left)
		text_add_spaces(line, width - taken);
	text_add_string(line, cell);
	if (left && !last)
		text_add_spaces(line, width - taken);
}

/* Bytes of a line that are shown in colour. */
struct colour_span {
	size_t from, to;
	const char *colour;
};

/* Colour of a thread state; NULL: none. */
static const char *state_colour(int64_t state)
{
	static const char *const colours[STATE_COUNT] = {
		[STATE_ON] = "\033[32m",    /* green */
		[STATE_RQ] = "\033[33m",    /* yellow */
		[STATE_DISK] = "\033[31m",  /* red */
		[STATE_SLEEP] = "\033[34m", /* blue */
	};

	return state >= 0 && state < STATE_COUNT ? colours[state] : NULL;
}

/* The colour of the row's state and bar. */
static const char *row_colour(const struct column_list *list, const union value *values)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i]->kind == KIND_STATE)
			return state_colour(values[i].number);
	return COLOUR_BAR;
}

/* The coloured part of a cell that begins at byte `from` of the line: the state, or the bar. */
static struct colour_span cell_span(const struct column *column, const struct text *line,
				    size_t from, const char *colour)
{
	struct colour_span span = {from, from, NULL};
	const char *bar;

	if (column->kind == KIND_STATE) {
		span.to = from + strcspn(text_string(line) + from, " ");
		span.colour = colour;
	} else if (column->kind == KIND_PERMILLE && (bar = strchr(text_string(line) + from, '#'))) {
		span.from = (size_t)(bar - text_string(line));
		span.to = span.from + strspn(bar, "#");
		span.colour = colour;
	}
	return span;
}

/* Adds the first bytes of the line, with colours around spans, which are in order. */
static void add_coloured(struct text *out, const char *line, size_t length,
			 const struct colour_span *spans, size_t count)
{
	size_t at = 0;

	for (size_t i = 0; i < count && spans[i].to <= length; i++) {
		text_add(out, line + at, spans[i].from - at);
		text_add_string(out, spans[i].colour);
		text_add(out, line + spans[i].from, spans[i].to - spans[i].from);
		text_add_string(out, PLAIN);
		at = spans[i].to;
	}
	text_add(out, line + at, length - at);
}

/* Adds the row's cells, or the titles when values is NULL. */
static void add_row(struct text *out, const struct layout *layout, const union value *values)
{
	const struct interval *interval = layout->interval;
	const struct column_list *list = interval->grid->list;
	struct colour_span spans[COLUMN_LIST_MAX];
	const char *colour = values && interval->colour ? row_colour(list, values) : NULL;
	bool bold = !values && interval->colour;
	size_t span_count = 0;
	struct text line = {0}, cell = {0};
	const char *words;
	size_t length;

	for (size_t i = 0; i < layout->columns; i++) {
		size_t from;

		text_clear(&cell);
		if (values)
			cell_write(&cell, layout, list->items[i], values[i]);
		else
			text_add_string(&cell, list->items[i]->title);
		if (i)
			text_add_spaces(&line, GAP);
		from = line.length;
		add_cell(&line, text_string(&cell), layout->widths[i],
			 aligned_left(layout, list->items[i]), i + 1 == layout->columns);
		if (colour)
			spans[span_count] = cell_span(list->items[i], &line, from, colour);
		span_count += colour && spans[span_count].colour;
	}
	words = text_string(&line);
	length = interval->width ? text_fit(words, interval->width) : line.length;
	while (length && words[length - 1] == ' ')
		length--;
	text_add_string(out, bold ? BOLD : "");
	add_coloured(out, words, length, spans, span_count);
	text_add_string(out, bold ? PLAIN "\n" : "\n");
	text_done(&line);
	text_done(&cell);
}

size_t interval_add_columns(struct text *out, const struct interval *interval, size_t rows)
{
	struct layout layout;

	layout_find(&layout, interval, rows);
	add_row(out, &layout, NULL);
	for (size_t row = 0; row < rows; row++) {
		add_row(out, &layout, grid_row(interval->grid, row));
		interval_add_stacks(out, interval, row);
	}
	return layout.columns;
}

void interval_add_table(struct text *out, const struct interval *interval, size_t rows)
{
	const struct column_list *list = interval->grid->list;
	size_t columns = interval_add_columns(out, interval, rows);
	struct text line = {0};

	for (size_t i = columns; i < list->count; i++)
		text_add_format(&line, "%s%s", i > columns ? ", " : "", list->items[i]->title);
	if (columns < list->count)
		text_add_string(&line, ": in a wider terminal");
	interval_add_wrapped(out, interval, text_string(&line));
	text_done(&line);
}
