/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The top of the screen, above the table: source, time and the band. */
#include "screen/draw.h"
#include "base/clock.h"
#include "render/renderer.h"
#include "report/value.h"

#include <string.h>

static const struct band_look {
	const char *sign;
	enum style style;
} band_looks[BAND_COUNT] = {
	[BAND_ON] = {"#", STYLE_ON},
	[BAND_RQ] = {"r", STYLE_RQ},
	[BAND_DISK] = {"D", STYLE_DISK},
	[BAND_WORK] = {"s", STYLE_WORK},
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
		text_add_format(text, "%s%lld samples in more groups than tsnap keeps", before,
				(long long)shown->groups.refused);
		before = "; ";
	}
	for (size_t i = 0; i < status->missed_count; i++) {
		uint64_t count = missed_count(status, i);

		if (!count)
			continue;
		text_add_format(text, "%s%llu ", before, (unsigned long long)count);
		text_add(text, status->missed[i].what, strcspn(status->missed[i].what, "("));
		text->length -= text->bytes[text->length - 1] == ' ';
		text_end(text, text->bytes + text->length);
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

void draw_head(struct cells *cells, const struct layout *layout, const struct view *view,
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
	text_clear(&line);
	text_add_string(&line, shown->source.error);
	if (!line.length)
		add_missed(&line, shown);
	width = 0;
	if (line.length) {
		width = text_width(text_string(&line)) + 2;
		cells_put_cut(cells, 2, 0, columns, text_string(&line), STYLE_ALERT);
	}
	text_clear(&line);
	add_history(&line, shown);
	if (width < columns)
		cells_put_cut(cells, 2, width, columns - width, text_string(&line), STYLE_FAINT);
	text_done(&line);
	text_done(&position);
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

void draw_band(struct cells *cells, const struct layout *layout, const struct shown *shown)
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
