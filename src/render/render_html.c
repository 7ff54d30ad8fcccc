/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --html: a report as one page that refers to nothing outside: the findings, a picture of the time,
 * the table, a flame graph, and a script (page.js) with which readers choose a stretch of the time,
 * and sort and filter the table. Without the script, everything is there for the whole time.
 *
 * The table of the whole time is that of a report, with its exact times. The picture, the flame
 * graph and all that is shown of a stretch are made of samples: report/time_facts.h. The script
 * gets them as numbers alone, by row of the table, band of a chart, and frame of the graph. What is
 * too small for a page of a megabyte is summed up, and the page says so.
 *
 * Every text goes through xml_add(), and is printable: nothing that a process calls itself becomes
 * an element or a script. The page's policy also forbids browsers to load anything.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "render/flame_svg.h"
#include "render/fold.h"
#include "render/renderer.h"
#include "report/findings.h"
#include "report/report.h"
#include "report/time_facts.h"
#include "report/value.h"

#include <stdlib.h>
#include <string.h>

/* Limits of the page's parts, in bytes. */
#define FLAME_BYTES 350000
#define TABLE_BYTES 180000
#define FACTS_BYTES 250000
#define FRAMES_MOST 2000
#define FRAMES_LEAST 50
#define FINDINGS_SHOWN 30
#define HEIGHT 1000	   /* of a chart, in its own units */
#define LINES_MOST 4	   /* lines of a chart's scale */
#define TICKS_MOST 8	   /* times below a chart */
#define WEIGHT_UNIT_US 100 /* of the script's numbers */
#define BANDS 10
#define OTHER_WAITS (BANDS - 1)
#define NO_BAND BANDS
#define PROGRAM "program"

enum { BAND_ON, BAND_RQ, BAND_DISK, BAND_SLEEP, BAND_OTHER, STATE_BANDS };

static const struct {
	enum thread_state_kind state;
	const char *words;
} state_bands[STATE_BANDS] = {
	[BAND_ON] = {STATE_ON, "ON, on a CPU"},
	[BAND_RQ] = {STATE_RQ, "RQ, waits for a CPU"},
	[BAND_DISK] = {STATE_DISK, "D, disk or kernel lock"},
	[BAND_SLEEP] = {STATE_SLEEP, "S, asleep"},
	[BAND_OTHER] = {STATE_COUNT, "other states"},
};

/* Times of which labels are multiples, and how much of a local time they need. */
static const struct {
	int64_t us;
	int from, length;
} ticks[] = {
	{100000, 11, 10},	    {500000, 11, 10},	    {1000000, 11, 8},
	{5000000, 11, 8},	    {10000000, 11, 8},	    {30000000, 11, 8},
	{60000000, 11, 5},	    {300000000, 11, 5},	    {600000000, 11, 5},
	{1800000000, 11, 5},	    {3600000000, 11, 5},    {10800000000, 5, 11},
	{21600000000, 5, 11},	    {43200000000, 5, 11},   {86400000000, 0, 10},
	{604800000000, 0, 10},	    {2592000000000, 0, 10}, {31536000000000, 0, 10},
	{31536000000000000, 0, 10},
};

/* What is waited for: a text of waits, or the call where that is not known. */
struct wait_sum {
	const char *text; /* NULL: not known */
	bool is_call;
	int64_t us;
	size_t band;
};

/* What the script gets of a fact. */
struct fact_place {
	size_t state, wait; /* bands; NO_BAND: it does not wait */
	int64_t row;	    /* of the table; -1: it is not there */
	uint32_t frame;
};

/* Bands of a chart, one on the other, in us by step. */
struct chart {
	const char *title, *class;
	size_t count;
	struct text names[BANDS];
	int64_t us[BANDS][STEPS_MAX];
};

/* State of the part that takes samples. */
struct html_part {
	struct time_facts facts;
	size_t chosen; /* columns of the report, before the keys that the page adds */
};

struct page {
	struct text *out;
	const struct html_part *part;
	const struct interval *interval;
	const struct time_facts *facts;
	size_t steps;
	int64_t scanned_us[STEPS_MAX], all_us;
	struct keyed waits; /* struct wait_sum */
	struct fact_place *places;
	struct chart states, waiting;
	struct frame_tree tree;
	struct grid stacks; /* a row for each fact */
	struct column_list stack_list;
	size_t rows; /* of the table */
	bool hides[COLUMN_LIST_MAX];
};

static const struct time_fact *fact_at(const struct page *page, size_t at)
{
	return (const struct time_fact *)page->facts->facts.rows + at;
}

static int64_t facts_total(const struct page *page)
{
	int64_t us = 0;

	for (size_t i = 0; i < page->facts->facts.count; i++)
		us = sum(us, fact_at(page, i)->weight_us);
	return us;
}

/* Words ---------------------------------------------------------------------------------------- */

static void words_add(struct page *page, const char *words)
{
	xml_add(page->out, words, strlen(words));
}

/* Adds an element with these words. tag: with its attributes, which have nothing of outside. */
static void element_add(struct page *page, const char *tag, const char *words)
{
	text_add_format(page->out, "<%s>", tag);
	words_add(page, words);
	text_add_format(page->out, "</%.*s>\n", (int)strcspn(tag, " "), tag);
}

/* Adds an element for each line. */
static void lines_add(struct page *page, const char *tag, const char *lines)
{
	while (*lines) {
		size_t length = strcspn(lines, "\n");
		struct text line = {0};

		text_add(&line, lines, length);
		if (length)
			element_add(page, tag, text_string(&line));
		text_done(&line);
		lines += length + (lines[length] == '\n');
	}
}

static void title_add(struct text *title, const struct interval *interval)
{
	text_add_string(title, "tsnap: ");
	text_add_printable(title, *interval->status->host ? interval->status->host
				  : interval->recording	  ? interval->recording
							  : "report");
}

static void head_add(struct page *page)
{
	struct text title = {0};

	title_add(&title, page->interval);
	if (page->interval->tally->scans) {
		text_add_string(&title, ", ");
		interval_add_times(&title, page->interval, true, 0);
	}
	/* the policy: nothing is loaded, whatever the page contains */
	text_add_string(page->out,
			"<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
			"<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
			"'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
			"<meta name=\"viewport\" content=\"width=device-width, "
			"initial-scale=1\">\n");
	element_add(page, "title", text_string(&title));
	text_add_format(page->out, "<style>\n%s</style>\n</head>\n<body>\n", page_style);
	text_done(&title);
}

static void header_add(struct page *page, const struct findings *findings)
{
	struct text line = {0};

	text_add_string(page->out, "<header>\n");
	title_add(&line, page->interval);
	element_add(page, "h1", text_string(&line));
	text_clear(&line);
	if (findings)
		interval_add_findings_header(&line, page->interval, findings);
	else
		interval_add_origin(&line, page->interval);
	lines_add(page, "p", text_string(&line));
	text_clear(&line);
	interval_add_scans(&line, page->interval);
	element_add(page, "p class=\"minor\"", text_string(&line));
	text_clear(&line);
	if (page->interval->command)
		text_add_printable(&line, page->interval->command);
	lines_add(page, "p class=\"minor command\"", text_string(&line));
	text_add_string(page->out, "</header>\n");
	text_done(&line);
}

static void findings_add_section(struct page *page, const struct findings *findings)
{
	size_t count = findings->count, shown = count < FINDINGS_SHOWN ? count : FINDINGS_SHOWN;
	struct text rest = {0};

	text_add_string(page->out, "<section id=\"findings\">\n<h2>Findings</h2>\n");
	text_add_string(page->out, shown ? "<ol>\n" : "");
	for (size_t i = 0; i < shown; i++) {
		const struct finding *finding = finding_at(findings, i);
		struct text sentence = {0}, grounds = {0}, command = {0};

		interval_add_finding(&sentence, page->interval, findings, finding, 0);
		interval_add_grounds(&grounds, &command, page->interval, findings, finding);
		text_add_string(page->out, "<li>\n");
		element_add(page, "p class=\"finding\"", text_string(&sentence));
		lines_add(page, "p class=\"minor\"", text_string(&grounds));
		lines_add(page, "code", text_string(&command));
		text_add_string(page->out, "</li>\n");
		text_done(&sentence);
		text_done(&grounds);
		text_done(&command);
	}
	text_add_string(page->out, shown ? "</ol>\n" : "");
	if (shown < count)
		text_add_format(page->out, "<p>%zu more</p>\n", count - shown);
	interval_add_findings_rest(&rest, page->interval, findings);
	lines_add(page, "p", text_string(&rest));
	text_add_string(page->out, "</section>\n");
	text_done(&rest);
}

/* Charts --------------------------------------------------------------------------------------- */

static size_t state_band(int64_t state)
{
	size_t band = 0;

	while (band < BAND_OTHER && (int64_t)state_bands[band].state != state)
		band++;
	return band;
}

static bool is_waiting(const struct time_fact *fact)
{
	size_t band = state_band(fact->state);

	return band == BAND_RQ || band == BAND_DISK || band == BAND_SLEEP;
}

static struct wait_sum *wait_of(struct page *page, const struct time_fact *fact)
{
	const char *text = fact->wait ? fact->wait : fact->syscall;
	bool is_call = !fact->wait && fact->syscall, added;
	uint64_t key = hash_u64((uint64_t)(uintptr_t)text) + is_call;
	struct wait_sum *wait = keyed_put(&page->waits, sizeof(*wait), key, &added);

	wait->text = text;
	wait->is_call = is_call;
	return wait;
}

static int waits_compare(const void *a, const void *b)
{
	const struct wait_sum *x = *(struct wait_sum *const *)a, *y = *(struct wait_sum *const *)b;

	if (x->us != y->us)
		return x->us > y->us ? -1 : 1;
	if (!x->text || !y->text)
		return x->text ? -1 : 1;
	return strcmp(x->text, y->text);
}

static void wait_name_add(struct text *name, const struct wait_sum *wait)
{
	if (wait->is_call)
		text_add_string(name, "in ");
	text_add_printable(name, wait->text ? wait->text : "not known");
}

/* Gives a band of its own to each of the waits with most time. */
static void waits_rank(struct page *page)
{
	struct wait_sum *waits = page->waits.rows, **order;
	size_t count = page->waits.count;

	order = memory_get((count + 1) * sizeof(struct wait_sum *));
	for (size_t i = 0; i < count; i++)
		order[i] = &waits[i];
	if (count > 1)
		qsort(order, count, sizeof(struct wait_sum *), waits_compare);
	for (size_t i = 0; i < count; i++) {
		order[i]->band = i < OTHER_WAITS || count == BANDS ? i : OTHER_WAITS;
		if (i < OTHER_WAITS || count == BANDS)
			wait_name_add(&page->waiting.names[i], order[i]);
	}
	if (count > BANDS)
		text_add_format(&page->waiting.names[OTHER_WAITS], "%zu other waits",
				count - OTHER_WAITS);
	page->waiting.count = count < BANDS ? count : BANDS;
	free(order);
}

static void charts_fill(struct page *page)
{
	const struct time_facts *facts = page->facts;
	const struct time_step_scanned *step = facts->steps.rows;
	const struct time_cell *cell = facts->cells.rows;

	page->steps = facts->step_us ? (size_t)(facts->last - facts->first) + 1 : 0;
	page->places = memory_get((facts->facts.count + 1) * sizeof(*page->places));
	page->states =
		(struct chart){.title = "Threads by state", .class = "s", .count = STATE_BANDS};
	page->waiting = (struct chart){.title = "Threads by what they wait for", .class = "w"};
	for (int i = 0; i < STATE_BANDS; i++)
		text_add_string(&page->states.names[i], state_bands[i].words);
	for (size_t i = 0; i < facts->facts.count; i++) {
		struct wait_sum *wait;

		page->places[i].state = state_band(fact_at(page, i)->state);
		if (!is_waiting(fact_at(page, i)))
			continue;
		wait = wait_of(page, fact_at(page, i));
		wait->us = sum(wait->us, fact_at(page, i)->weight_us);
	}
	waits_rank(page);
	for (size_t i = 0; i < facts->facts.count; i++)
		page->places[i].wait = is_waiting(fact_at(page, i))
					       ? wait_of(page, fact_at(page, i))->band
					       : NO_BAND;
	for (size_t i = 0; i < facts->steps.count; i++) {
		page->scanned_us[step[i].step - facts->first] = step[i].us;
		page->all_us = sum(page->all_us, step[i].us);
	}
	for (size_t i = 0; i < facts->cells.count; i++) {
		const struct fact_place *place = &page->places[cell[i].fact];
		size_t at = (size_t)(cell[i].step - facts->first);
		int64_t *us = &page->states.us[place->state][at];

		*us = sum(*us, cell[i].us);
		us = place->wait == NO_BAND ? us : &page->waiting.us[place->wait][at];
		if (place->wait != NO_BAND)
			*us = sum(*us, cell[i].us);
	}
}

/* Hundredths of threads in a step: those of the first `bands` bands. */
static int64_t threads_in(const struct page *page, const struct chart *chart, size_t bands,
			  size_t step)
{
	int64_t us = 0;

	for (size_t i = 0; i < bands; i++)
		us = sum(us, chart->us[i][step]);
	return ratio(us, 100, page->scanned_us[step]);
}

static int64_t band_total(const struct page *page, const struct chart *chart, size_t band)
{
	int64_t us = 0;

	for (size_t i = 0; i < page->steps; i++)
		us = sum(us, chart->us[band][i]);
	return us;
}

/* Adds the area below the upper edge of a band; wider bands are behind. */
static void band_add(struct page *page, const struct chart *chart, size_t band, int64_t most)
{
	int64_t y = HEIGHT, width = 0;

	text_add_format(page->out, "<path class=\"%s%zu\" d=\"M0,%d", chart->class, band, HEIGHT);
	for (size_t i = 0; i < page->steps; i++) {
		int64_t to = HEIGHT - ratio(threads_in(page, chart, band + 1, i), HEIGHT, most);

		if (to != y && width)
			text_add_format(page->out, "h%lld", (long long)width);
		width = to != y ? 0 : width;
		if (to != y)
			text_add_format(page->out, "V%lld", (long long)to);
		y = to;
		width++;
	}
	text_add_format(page->out, "h%lldV%dz\"/>\n", (long long)width, HEIGHT);
}

/* Adds a shade for steps that no scan saw. */
static void gaps_add(struct page *page)
{
	size_t start = page->out->length, i = 0;

	while (i < page->steps) {
		size_t from = i;

		while (i < page->steps && !page->scanned_us[i])
			i++;
		if (i == from) {
			i++;
			continue;
		}
		text_add_string(page->out,
				page->out->length == start ? "<path class=\"gap\" d=\"" : "");
		text_add_format(page->out, "M%zu,0h%zuv%dh-%zuz", from, i - from, HEIGHT, i - from);
	}
	if (page->out->length > start)
		text_add_string(page->out, "\"/>\n");
}

/* Adds lines at round numbers of threads, as a scale. */
static void scale_add(struct page *page, int64_t most)
{
	static const int64_t rounds[] = {1, 2, 5};
	int64_t unit = 1;

	for (int64_t i = 1, ten = 1; most / unit > LINES_MOST; i++) {
		ten *= i % 3 ? 1 : 10;
		unit = rounds[i % 3] * ten;
	}
	for (int64_t line = 1; line <= most / unit; line++) {
		int64_t at = line * unit, place = ratio(at, 10000, most);

		text_add_string(page->out, "<i style=\"bottom:");
		text_add_decimals(page->out, place, 2);
		text_add_string(page->out, "%\"><b>");
		if (at % 100)
			text_add_decimals(page->out, at, 2);
		else
			text_add_number(page->out, at / 100);
		text_add_string(page->out, "</b></i>\n");
	}
}

/* Adds times below a chart. */
static void ticks_add(struct page *page)
{
	int64_t from_us = page->facts->first * page->facts->step_us;
	int64_t span_us = (int64_t)page->steps * page->facts->step_us;
	int64_t zone_us = clock_zone_us(from_us);
	size_t kind = 0, count = sizeof(ticks) / sizeof(ticks[0]);
	char local[CLOCK_LOCAL_SIZE];

	while (kind + 1 < count && span_us / ticks[kind].us > TICKS_MOST)
		kind++;
	text_add_string(page->out, "<div class=\"ticks\">");
	for (int64_t at = ((from_us + zone_us - 1) / ticks[kind].us + 1) * ticks[kind].us - zone_us;
	     at < from_us + span_us; at += ticks[kind].us) {
		int64_t place = ratio(at - from_us, 10000, span_us);

		clock_format_local(at, local);
		text_add_string(page->out, "<span style=\"left:");
		text_add_decimals(page->out, place, 2);
		text_add_format(page->out, "%%\">%.*s</span>", ticks[kind].length,
				local + ticks[kind].from);
	}
	text_add_string(page->out, "</div>\n");
}

/* Adds what the bands are, and how many threads they have. */
static void legend_add(struct page *page, const struct chart *chart)
{
	text_add_string(page->out, "<ul class=\"legend\">\n");
	for (size_t band = 0; band < chart->count; band++) {
		int64_t us = band_total(page, chart, band), most = 0;

		if (!us)
			continue;
		for (size_t i = 0; i < page->steps; i++) {
			int64_t threads = ratio(chart->us[band][i], 100, page->scanned_us[i]);

			most = threads > most ? threads : most;
		}
		text_add_format(page->out, "<li><span class=\"swatch %s%zu\"></span>", chart->class,
				band);
		words_add(page, text_string(&chart->names[band]));
		text_add_format(page->out, " <b data-%s=\"%zu\">", chart->class, band);
		text_add_decimals(page->out, ratio(us, 100, page->all_us), 2);
		text_add_string(page->out, "</b> <small>at most ");
		text_add_decimals(page->out, most, 2);
		text_add_string(page->out, "</small></li>\n");
	}
	text_add_string(page->out, "</ul>\n");
}

static void chart_add(struct page *page, const struct chart *chart)
{
	int64_t most = 1;

	for (size_t i = 0; i < page->steps; i++) {
		int64_t threads = threads_in(page, chart, chart->count, i);

		most = threads > most ? threads : most;
	}
	text_add_string(page->out, "<figure>\n");
	element_add(page, "figcaption", chart->title);
	text_add_format(page->out,
			"<div class=\"plot\"><svg viewBox=\"0 0 %zu %d\" "
			"preserveAspectRatio=\"none\" role=\"img\" aria-label=\"%s; the list below "
			"has the numbers\">\n",
			page->steps, HEIGHT, chart->title);
	gaps_add(page);
	for (size_t band = chart->count; band-- > 0;)
		if (band_total(page, chart, band))
			band_add(page, chart, band, most);
	text_add_string(page->out, "</svg>\n");
	scale_add(page, most);
	text_add_string(page->out, "</div>\n");
	ticks_add(page);
	legend_add(page, chart);
	text_add_string(page->out, "</figure>\n");
}

/* Adds the command that reports on a stretch of a recording alone; the script adds the times. */
static void stretch_add(struct page *page)
{
	const char *recording = page->interval->recording;
	struct text command = {0};

	if (recording && strcmp(recording, "standard input") != 0) {
		text_add_string(&command, "tsnap --replay ");
		text_add_word(&command, recording);
	}
	text_add_string(
		page->out,
		"<div id=\"stretch\" hidden>\n<label>From <input id=\"from\" type=\"range\" "
		"min=\"0\" step=\"1\"></label>\n<label>to <input id=\"to\" type=\"range\" "
		"min=\"0\" step=\"1\"></label>\n<button id=\"whole\" type=\"button\">All of "
		"the time</button>\n<output id=\"chosen\"></output>\n<code id=\"command\" "
		"hidden data-command=\"");
	words_add(page, text_string(&command));
	text_add_string(page->out, "\"></code>\n</div>\n");
	text_done(&command);
}

/* Adds what other parts have below the rows, as the minutes of a replay in which most waited. */
static void below_add(struct page *page)
{
	struct text below = {0};

	REPORT_EACH (use, page->interval->report, below)
		use->part->below(&below, page->interval, use->state);
	if (below.length)
		element_add(page, "pre", text_string(&below));
	text_done(&below);
}

static void time_add(struct page *page)
{
	struct text step = {0};

	text_add_duration(&step, page->facts->step_us * NS_PER_US);
	text_add_string(page->out, "<section id=\"time\">\n<h2>Time</h2>\n");
	text_add_string(page->out,
			"<p class=\"minor\">Threads of an average scan, of samples; each step is ");
	words_add(page, text_string(&step));
	text_add_string(page->out, ".</p>\n");
	chart_add(page, &page->states);
	if (page->waiting.count)
		chart_add(page, &page->waiting);
	stretch_add(page);
	below_add(page);
	text_add_string(page->out, "</section>\n");
	text_done(&step);
}

/* The table ------------------------------------------------------------------------------------ */

/* Of the keys that the page added, user and container are shown where a row has one. */
static bool is_shown(const struct page *page, size_t column)
{
	const struct grid *grid = page->interval->grid;
	const struct column *of = grid->list->items[column];

	if (column < page->part->chosen)
		return true;
	for (size_t row = 0; row < grid->row_count && strcmp(of->name, "commsum") != 0; row++)
		if (!value_is_absent(of, grid_row(grid, row)[column]))
			return true;
	return false;
}

static void table_head_add(struct page *page, const struct column_list *list)
{
	text_add_string(page->out, "<thead><tr>");
	for (size_t i = 0; i < list->count; i++) {
		page->hides[i] = !is_shown(page, i);
		if (page->hides[i])
			continue;
		/* data-m: in a stretch, it is of the whole time unless the script has it of samples
		 */
		text_add_format(page->out, "<th scope=\"col\"%s%s data-c=\"%s\" title=\"",
				column_is_text(list->items[i]) ? "" : " class=\"n\"",
				list->items[i]->role == ROLE_KEY ||
						!strcmp(list->items[i]->name, PROGRAM)
					? ""
					: " data-m",
				list->items[i]->name);
		words_add(page, list->items[i]->help);
		text_add_string(page->out, "\">");
		words_add(page, list->items[i]->title);
		text_add_string(page->out, "</th>");
	}
	text_add_string(page->out, "</tr></thead>\n<tbody>\n");
}

static void table_row_add(struct page *page, size_t row, struct text *cell)
{
	const struct grid *grid = page->interval->grid;
	const union value *values = grid_row(grid, row);

	text_add_format(page->out, "<tr data-r=\"%zu\">", row);
	for (size_t i = 0; i < grid->list->count; i++) {
		const struct column *column = grid->list->items[i];

		if (page->hides[i])
			continue;
		interval_add_cell(cell, column, values[i]);
		if (column_is_text(column) || value_is_absent(column, values[i]))
			text_add_string(page->out,
					column_is_text(column) ? "<td>" : "<td class=\"n\">");
		else
			text_add_format(page->out, "<td class=\"n\" data-v=\"%lld\">",
					(long long)values[i].number);
		words_add(page, text_string(cell));
		text_add_string(page->out, "</td>");
	}
	text_add_string(page->out, "</tr>\n");
}

static void table_add(struct page *page)
{
	const struct grid *grid = page->interval->grid;
	size_t start = page->out->length;
	struct text cell = {0};

	text_add_string(page->out, "<section id=\"threads\">\n<h2>Threads</h2>\n");
	if (!grid->row_count) {
		interval_add_instead(&cell, page->interval);
		element_add(page, "pre", text_string(&cell));
		text_add_string(page->out, "</section>\n");
		text_done(&cell);
		return;
	}
	text_add_string(
		page->out,
		"<p class=\"minor\">ON on a CPU, RQ waits for a CPU, D disk or kernel lock, S "
		"asleep in a request.</p>\n<p id=\"words\" hidden><label>Rows with <input "
		"id=\"word\" type=\"search\" spellcheck=\"false\"></label> <output "
		"id=\"rows\"></output></p>\n<div class=\"wide\" tabindex=\"0\"><table "
		"id=\"table\">\n");
	table_head_add(page, grid->list);
	while (page->rows < grid->row_count && page->out->length - start < TABLE_BYTES)
		table_row_add(page, page->rows++, &cell);
	text_add_string(page->out, "</tbody></table></div>\n");
	if (page->rows < grid->row_count)
		text_add_format(page->out, "<p>%zu rows with less time are left out.</p>\n",
				grid->row_count - page->rows);
	text_add_string(page->out, "</section>\n");
	text_done(&cell);
}

static void rows_find(struct page *page)
{
	const struct grid *grid = page->interval->grid;
	struct index rows = {0};

	for (size_t i = 0; i < page->rows; i++)
		*index_put(&rows, time_facts_row(grid->list, grid_row(grid, i)), NULL) = i + 1;
	for (size_t i = 0; i < page->facts->facts.count; i++) {
		const uint64_t *row = index_find(&rows, fact_at(page, i)->row);

		page->places[i].row = row ? (int64_t)*row - 1 : -1;
	}
	index_clear(&rows);
}

/* The flame graph ------------------------------------------------------------------------------ */

/* Makes a row of each fact, as renderers of stacks have them. True: one has a stack. */
static bool stacks_fill(struct page *page)
{
	struct error unsaid = {0};
	bool any = false;

	column_list_add(&page->stack_list, FOLD_ROOTS_DEFAULT "," FOLD_COLUMNS, true, &unsaid);
	error_done(&unsaid);
	grid_size(&page->stacks, &page->stack_list, page->facts->facts.count);
	for (size_t i = 0; i < page->facts->facts.count; i++) {
		const struct time_fact *fact = fact_at(page, i);
		struct sample sample = *sample_absent();
		union value *to = page->stacks.values + i * page->stack_list.count;

		sample.thread.comm = fact->comm;
		sample.now.state = fact->state;
		sample.call.name = fact->syscall;
		sample.stack.both = fact->stack;
		sample.scan.weight_us = fact->row ? fact->weight_us : 0;
		for (size_t column = 0; column < page->stack_list.count; column++)
			to[column] = column_read(page->stack_list.items[column], &sample);
		any |= fact->stack != NULL;
	}
	return any;
}

static void flame_add(struct page *page)
{
	size_t start, facts = page->facts->facts.count;
	uint32_t *nodes, *frames;
	struct flame flame = {.tree = &page->tree, .subtitle = "", .footer = "", .within = true};

	if (!stacks_fill(page)) {
		text_add_string(page->out, "<p>The samples have no stacks");
		text_add_string(page->out, page->interval->recording
						   ? ": record them with -G stack.</p>\n"
						   : ".</p>\n");
		return;
	}
	nodes = memory_get(facts * sizeof(*nodes));
	fold_interval(&page->tree, &(struct interval){.grid = &page->stacks, .root_count = 1},
		      nodes);
	flame.title = flame_title(&page->tree);
	flame.most = page->tree.count < FRAMES_MOST ? page->tree.count : FRAMES_MOST;
	text_add_string(page->out, "<div class=\"wide\">");
	start = page->out->length;
	flame_svg_add(page->out, &flame);
	while (page->out->length - start > FLAME_BYTES && flame.most > FRAMES_LEAST) {
		flame.most = flame.most * FLAME_BYTES / (page->out->length - start) * 9 / 10;
		text_end(page->out, page->out->bytes + start);
		flame_svg_add(page->out, &flame);
	}
	text_add_string(page->out, "</div>\n");
	frames = memory_get(page->tree.count * sizeof(*frames));
	flame_number(&flame, frames);
	for (size_t i = 0; i < facts; i++)
		page->places[i].frame = frames[nodes[i]];
	free(frames);
	free(nodes);
}

/* What the script gets ------------------------------------------------------------------------- */

static int cells_compare(const void *a, const void *b, void *from)
{
	const struct time_cell *x = a, *y = b;
	const struct page *page = from;
	int64_t more;

	if (x->fact == y->fact)
		return (x->step > y->step) - (x->step < y->step);
	more = fact_at(page, y->fact)->weight_us - fact_at(page, x->fact)->weight_us;
	if (more)
		return more > 0 ? 1 : -1;
	return x->fact > y->fact ? 1 : -1;
}

/* Adds "row,state,wait,frame,number of cells, and for each its step and time". */
static void fact_add(struct text *out, const struct page *page, const struct fact_place *place,
		     const struct time_cell *cells, size_t count)
{
	text_add_format(out, ",%lld,%zu,%zu,%u,%zu", (long long)place->row, place->state,
			place->wait, place->frame, count);
	for (size_t i = 0; i < count; i++)
		text_add_format(out, ",%lld,%lld", (long long)(cells[i].step - page->facts->first),
				(long long)ratio(cells[i].us, 1, WEIGHT_UNIT_US));
}

/* Small facts of the same bands, summed up. */
struct small {
	struct keyed
		cells; /* struct time_cell, by bands and step; fact: state * (BANDS + 1) + wait */
	size_t count;
	int64_t us;
};

static void small_add(struct small *small, const struct fact_place *place,
		      const struct time_cell *cells, size_t count)
{
	size_t bands = place->state * (BANDS + 1) + place->wait;

	small->count++;
	for (size_t i = 0; i < count; i++) {
		struct time_cell *cell = keyed_put(&small->cells, sizeof(*cell),
						   hash_u64((uint64_t)cells[i].step) + bands, NULL);

		cell->fact = bands;
		cell->step = cells[i].step;
		cell->us = sum(cell->us, cells[i].us);
		small->us = sum(small->us, cells[i].us);
	}
}

static int small_compare(const void *a, const void *b)
{
	const struct time_cell *x = a, *y = b;

	if (x->fact != y->fact)
		return x->fact > y->fact ? 1 : -1;
	return (x->step > y->step) - (x->step < y->step);
}

/* Adds the sums of small facts, which are in no row, and in the lowest frame. */
static void small_write(struct text *out, const struct page *page, struct small *small)
{
	struct time_cell *cells = small->cells.rows;
	size_t count = small->cells.count, i = 0;

	if (count)
		qsort(cells, count, sizeof(*cells), small_compare);
	while (i < count) {
		struct fact_place place = {cells[i].fact / (BANDS + 1), cells[i].fact % (BANDS + 1),
					   -1, 0};
		size_t from = i;

		while (i < count && cells[i].fact == cells[from].fact)
			i++;
		fact_add(out, page, &place, cells + from, i - from);
	}
}

static void facts_write(struct text *out, const struct page *page, struct small *small)
{
	size_t count = page->facts->cells.count, i = 0, before;
	struct time_cell *cells = memory_get((count + 1) * sizeof(*cells));

	if (count)
		memcpy(cells, page->facts->cells.rows, count * sizeof(*cells));
	qsort_r(cells, count, sizeof(*cells), cells_compare, (void *)page);
	while (i < count) {
		const struct fact_place *place = &page->places[cells[i].fact];
		size_t from = i;

		while (i < count && cells[i].fact == cells[from].fact)
			i++;
		before = out->length;
		if (!small->count)
			fact_add(out, page, place, cells + from, i - from);
		if (out->length < FACTS_BYTES && !small->count)
			continue;
		text_end(out, out->bytes + before);
		small_add(small, place, cells + from, i - from);
	}
	free(cells);
}

static void facts_add(struct page *page)
{
	int64_t from_us = page->facts->first * page->facts->step_us;
	struct text facts = {0};
	struct small small = {0};

	facts_write(&facts, page, &small);
	small_write(&facts, page, &small);
	text_add_format(page->out,
			"<script type=\"application/json\" id=\"facts\">{\"step_ms\":%lld,"
			"\"from_ms\":%lld,\"zone_ms\":%lld,\"scanned\":[",
			(long long)(page->facts->step_us / US_PER_MS),
			(long long)(from_us / US_PER_MS),
			(long long)(clock_zone_us(from_us) / US_PER_MS));
	for (size_t i = 0; i < page->steps; i++)
		text_add_format(page->out, "%s%lld", i ? "," : "",
				(long long)ratio(page->scanned_us[i], 1, WEIGHT_UNIT_US));
	text_add_string(page->out, "],\"facts\":[");
	if (facts.length)
		text_add_string(page->out, text_string(&facts) + 1);
	text_add_string(page->out, "]}</script>\n");
	if (small.count) {
		text_add_format(
			page->out,
			"<p class=\"minor\">When a stretch is chosen, the smallest %zu of %zu "
			"combinations of row, wait and stack are in the charts alone, not in "
			"rows and frames: ",
			small.count, page->facts->facts.count);
		text_add_decimals(page->out, ratio(small.us, 10000, facts_total(page)), 2);
		text_add_string(page->out, " % of the time.</p>\n");
	}
	keyed_done(&small.cells);
	text_done(&facts);
}

/* The page ------------------------------------------------------------------------------------- */

static void notes_add(struct page *page)
{
	struct text notes = {0};
	int64_t rowless_us = 0;

	for (size_t i = 0; i < page->facts->facts.count; i++)
		if (!fact_at(page, i)->row)
			rowless_us = sum(rowless_us, fact_at(page, i)->weight_us);
	if (rowless_us) {
		text_add_string(&notes,
				"More combinations of row, wait and stack than a page keeps: ");
		text_add_decimals(&notes, ratio(rowless_us, 10000, facts_total(page)), 2);
		text_add_string(&notes, " % of the time is not in the flame graph, nor in the rows "
					"of a stretch.\n");
	}
	interval_add_notes(&notes, page->interval);
	if (notes.length) {
		text_add_string(page->out, "<section id=\"notes\">\n<h2>Notes</h2>\n");
		lines_add(page, "p", text_string(&notes));
		text_add_string(page->out, "</section>\n");
	}
	text_done(&notes);
}

static void page_done(struct page *page)
{
	for (int i = 0; i < BANDS; i++) {
		text_done(&page->states.names[i]);
		text_done(&page->waiting.names[i]);
	}
	keyed_done(&page->waits);
	frame_tree_done(&page->tree);
	grid_done(&page->stacks);
	free(page->places);
	free(page);
}

static void html_add(struct text *out, const struct interval *interval)
{
	const struct findings *findings = report_state(interval->report, &findings_part);
	struct interval whole = *interval;
	struct page *page = memory_get(sizeof(*page));

	whole.width = whole.height = whole.row_limit = 0;
	whole.colour = false;
	page->out = out;
	page->interval = &whole;
	page->part = report_state(interval->report, &page_part);
	page->facts = &page->part->facts;
	charts_fill(page);
	head_add(page);
	header_add(page, findings);
	text_add_string(out, "<main>\n");
	if (findings)
		findings_add_section(page, findings);
	if (page->steps)
		time_add(page);
	table_add(page);
	rows_find(page);
	text_add_string(out, "<section id=\"stacks\">\n<h2>Flame graph</h2>\n");
	flame_add(page);
	text_add_string(out, "</section>\n");
	notes_add(page);
	if (page->steps)
		facts_add(page);
	text_add_format(out, "</main>\n<script>\n%s</script>\n</body>\n</html>\n", page_script);
	page_done(page);
}

const struct renderer renderer_html = {
	.name = "html",
	.kind = RENDERER_REPORT,
	.grouped = true,
	.accounts = true,
	.has_footer = true,
	.of_findings = &renderer_html,
	.whole = "page",
	.before = REPORT_MEASURES_DEFAULT,
	.columns = REPORT_COLUMNS_DEFAULT,
	.add = html_add,
};

/* Programs are rows by more than their name: a sample finds its row by all keys. */
static int keys_add(struct report *report)
{
	for (size_t i = 0; i < report->list.count; i++)
		if (!strcmp(report->list.items[i]->name, PROGRAM))
			return column_list_add(&report->list, "user,container,commsum", true,
					       report->e);
	return 0;
}

static int page_begin(void *state, struct report *report)
{
	struct html_part *part = state;
	int err;

	if (report->renderer != &renderer_html)
		return 0;
	part->facts.rows = &report->list;
	part->chosen = report->list.count;
	err = keys_add(report);
	return err ? err : 1;
}

static uint64_t page_needs(const void *state)
{
	return time_facts_needs();
}

static bool page_take(void *state, struct report *report, const struct scan *batch)
{
	struct html_part *part = state;

	time_facts_begin(&part->facts, batch);
	return false;
}

static void page_add_sample(void *state, const struct sample *sample, struct exact_note note)
{
	struct html_part *part = state;

	time_facts_add(&part->facts, sample, note.again);
}

static int page_collect(void *state, struct report *report, bool all)
{
	struct html_part *part = state;

	if (!all)
		time_facts_end(&part->facts, report->scan);
	return 0;
}

static void page_clear(void *state)
{
	struct html_part *part = state;

	time_facts_clear(&part->facts);
}

const struct report_part page_part = {.bytes = sizeof(struct html_part),
				      .begin = page_begin,
				      .needs = page_needs,
				      .take = page_take,
				      .add = page_add_sample,
				      .collect = page_collect,
				      .clear = page_clear,
				      .done = page_clear};
