/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --heatmap: a line for each group, a sign for each step of time; the more threads an average scan
 * saw, the darker the sign. */
#include "base/clock.h"
#include "base/index.h"
#include "base/memory.h"
#include "render/renderer.h"
#include "report/report.h"
#include "report/groups.h"
#include "report/value.h"

#include <stdlib.h>
#include <string.h>

#define SIGNS_DEFAULT 100
#define SIGNS_LEAST 10
#define LABEL_MAX 40
#define LINES_MAX 40
#define AVERAGE "avg_thr"

struct line {
	struct text label;
	int64_t *cells; /* hundredths of threads */
	int64_t total;
};

struct heatmap {
	const struct time_rows *rows;
	size_t average; /* column of the average */
	int64_t merged; /* number of steps in a sign */
	size_t sign_count;
	int64_t *sign_steps; /* recorded steps of each sign */
	struct keyed lines;  /* struct line, by the label's hash */
	int64_t most;	     /* largest value of a cell */
};

static void label_make(const struct heatmap *map, const union value *row, struct text *label)
{
	const struct column_list *list = &map->rows->list;

	text_clear(label);
	/* column 0 is the time */
	for (size_t i = 1; i < list->count; i++) {
		if (list->items[i]->role != ROLE_KEY)
			continue;
		if (label->length)
			text_add_char(label, ' ');
		if (value_is_absent(list->items[i], row[i]))
			text_add_string(label, ABSENT_TEXT);
		else
			value_add(label, list->items[i], row[i]);
	}
}

static struct line *line_of(struct heatmap *map, struct text *label)
{
	uint64_t key = hash_bytes(text_string(label), label->length);
	bool added;
	struct line *line = keyed_put(&map->lines, sizeof(*line), key, &added);

	if (!added)
		return line;
	line->cells = memory_get(map->sign_count * sizeof(*line->cells));
	text_add_string(&line->label, text_string(label));
	return line;
}

static void rows_take(struct heatmap *map)
{
	const struct time_rows *rows = map->rows;
	struct text label = {0};
	size_t row = 0;

	for (size_t i = 0; i < rows->step_count; i++) {
		const struct time_step *step = &rows->steps[i];
		size_t sign = (size_t)((step->from_us - rows->steps[0].from_us) / rows->step_us /
				       map->merged);

		for (; row < step->row_end; row++) {
			const union value *values = grid_row(&rows->grid, row);
			struct line *line;

			label_make(map, values, &label);
			line = line_of(map, &label);
			/* after a clock was put back, a step may be outside the map */
			if (sign >= map->sign_count)
				continue;
			line->cells[sign] = sum(line->cells[sign], values[map->average].number);
		}
		if (sign < map->sign_count)
			map->sign_steps[sign]++;
	}
	text_done(&label);
}

/* Makes the cells' sums averages. */
static void cells_divide(struct heatmap *map)
{
	struct line *line = map->lines.rows;

	for (size_t i = 0; i < map->lines.count; i++, line++) {
		for (size_t sign = 0; sign < map->sign_count; sign++) {
			int64_t *cell = &line->cells[sign];

			/* a group that was there at all has a mark */
			if (*cell) {
				*cell = ratio(*cell, 1, map->sign_steps[sign]);
				*cell += !*cell;
			}
			line->total = sum(line->total, *cell);
			if (*cell > map->most)
				map->most = *cell;
		}
	}
}

static int line_compare(const void *a, const void *b)
{
	const struct line *x = a, *y = b;

	if (x->total != y->total)
		return x->total > y->total ? -1 : 1;
	return strcmp(text_string(&x->label), text_string(&y->label));
}

static void line_add(struct text *out, const struct heatmap *map, const struct line *line,
		     size_t label_width)
{
	const char *label = text_string(&line->label);
	size_t fits = text_fit(label, label_width), start = out->length;

	text_add(out, label, fits);
	text_add_spaces(out, label_width - text_width(text_string(out) + start));
	text_add_string(out, " |");
	for (size_t i = 0; i < map->sign_count; i++)
		text_add_char(out, shade_of(line->cells[i], map->most));
	text_add_string(out, "|\n");
}

/* Adds the scale: "2026-11-20 20:42 to 21:42 CET, 1m a sign; @: 3.20 threads" */
static void scale_add(struct text *out, const struct heatmap *map)
{
	const struct time_rows *rows = map->rows;
	int64_t sign_us = rows->step_us * map->merged, from_us = rows->steps[0].from_us;
	char from[CLOCK_LOCAL_SIZE], until[CLOCK_LOCAL_SIZE];

	clock_format_local(from_us, from);
	clock_format_local(from_us + sign_us * (int64_t)map->sign_count, until);
	text_add_format(out, "%.10s %.8s to %.10s %.8s %s, ", from, from + CLOCK_LOCAL_TIME, until,
			until + CLOCK_LOCAL_TIME, until + CLOCK_LOCAL_ZONE);
	text_add_duration(out, sign_us * NS_PER_US);
	text_add_string(out, " a sign; threads of an average scan, @: ");
	text_add_decimals(out, map->most, 2);
	text_add_char(out, '\n');
}

static void map_add(struct text *out, struct heatmap *map, const struct interval *interval,
		    size_t label_width)
{
	size_t most = interval->row_limit ? interval->row_limit : LINES_MAX, count;
	struct line *lines;

	rows_take(map);
	cells_divide(map);
	lines = map->lines.rows;
	count = map->lines.count;
	if (count)
		qsort(lines, count, sizeof(*lines), line_compare);
	scale_add(out, map);
	for (size_t i = 0; i < count && i < most; i++)
		line_add(out, map, &lines[i], label_width);
	if (count > most)
		text_add_format(out, "%zu more groups\n", count - most);
}

static size_t average_find(const struct column_list *list)
{
	size_t at = 1;

	while (at < list->count && strcmp(list->items[at]->name, AVERAGE))
		at++;
	return at;
}

static size_t labels_width(const struct heatmap *map)
{
	struct text label = {0};
	size_t width = 0;

	for (size_t row = 0; row < map->rows->grid.row_count; row++) {
		size_t wide;

		label_make(map, grid_row(&map->rows->grid, row), &label);
		wide = text_width(text_string(&label));
		width = wide > width ? wide : width;
	}
	text_done(&label);
	return width < LABEL_MAX ? width : LABEL_MAX;
}

void interval_add_heatmap(struct text *out, const struct interval *interval)
{
	const struct time_rows *rows = interval->report->steps;
	struct heatmap map = {.rows = rows, .average = average_find(&rows->list)};
	size_t label_width = labels_width(&map), signs = SIGNS_DEFAULT;
	int64_t first_us = 0, last_us = 0, steps;

	if (!rows->grid.row_count || map.average == rows->list.count)
		return;
	first_us = rows->steps[0].from_us;
	for (size_t i = 0; i < rows->step_count; i++)
		if (rows->steps[i].from_us > last_us)
			last_us = rows->steps[i].from_us;
	if (interval->width)
		signs = interval->width > label_width + SIGNS_LEAST + 3
				? interval->width - label_width - 3
				: SIGNS_LEAST;
	steps = (last_us - first_us) / rows->step_us + 1;
	map.merged = (steps - 1) / (int64_t)signs + 1;
	map.sign_count = (size_t)((steps - 1) / map.merged + 1);
	map.sign_steps = memory_get(map.sign_count * sizeof(*map.sign_steps));
	map_add(out, &map, interval, label_width);
	free(map.sign_steps);
	for (size_t i = 0; i < map.lines.count; i++) {
		struct line *line = (struct line *)map.lines.rows + i;

		text_done(&line->label);
		free(line->cells);
	}
	keyed_done(&map.lines);
}
