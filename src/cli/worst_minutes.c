/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The times of a replay, below its findings: how many threads worked and waited then, and the
 * minutes in which most waited, each with its own first finding. Who looks into a recording often
 * does not know when it happened.
 *
 * The finding of a minute is that of another replay, of this minute alone: a recording is read
 * without its other minutes.
 */
#include "cli/part_table.h"
#include "cli/run.h"
#include "base/clock.h"
#include "base/memory.h"
#include "render/renderer.h"
#include "report/value.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MINUTE_US (60 * US_PER_SECOND)
#define WORST_MAX 5
#define MINUTES_LEAST 3 /* a shorter recording is its own minute */
#define LINES 4
#define SIGNS_MAX 100
#define SIGNS_BESIDE 8	 /* "  ON |" before the signs, "|" behind them, and a free column */
#define WAITING_LEAST 10 /* hundredths of threads that make a minute bad */

static const enum thread_state_kind line_states[LINES] = {STATE_ON, STATE_RQ, STATE_DISK,
							  STATE_SLEEP};

struct minute {
	int64_t number; /* since 1970 */
	int64_t scanned_us, us[LINES];
};

struct worst_minutes {
	struct report *report;
	struct keyed minutes; /* struct minute, by number; sorted when filled */
	int64_t us[LINES];    /* of the present scan */
	struct text worst;    /* lines */
};

/* True if the recording can be read once more: no pipe. */
static bool readable_again(const struct config *config)
{
	struct stat file;

	return config->replay && strcmp(config->replay, "-") != 0 && !stat(config->replay, &file) &&
	       (S_ISREG(file.st_mode) || S_ISDIR(file.st_mode));
}

static int minutes_begin(void *state, struct report *report)
{
	struct worst_minutes *worst = state;
	const struct config *config = report->options;

	worst->report = report;
	return report->renderer == &renderer_report && report->config->findings &&
	       !config->interval_us && !config->count && readable_again(config);
}

static void minutes_add(void *state, const struct sample *sample, struct exact_note note)
{
	struct worst_minutes *worst = state;

	(void)note;
	for (int i = 0; i < LINES; i++)
		if (sample->now.state == line_states[i])
			worst->us[i] = sum(worst->us[i], sample->scan.weight_us);
}

static int minutes_collect(void *state, struct report *report, bool all)
{
	struct worst_minutes *worst = state;
	const struct scan *scan = report->scan;
	struct minute *minute;

	if (all)
		return 0;
	minute = keyed_put(&worst->minutes, sizeof(*minute), (uint64_t)(scan->time_us / MINUTE_US),
			   NULL);
	minute->number = scan->time_us / MINUTE_US;
	minute->scanned_us = sum(minute->scanned_us, scan->weight_us);
	for (int i = 0; i < LINES; i++)
		minute->us[i] = sum(minute->us[i], worst->us[i]);
	memset(worst->us, 0, sizeof(worst->us));
	return 0;
}

/* Returns hundredths of threads in an average scan. */
static int64_t average(const struct minute *minute, int line)
{
	return ratio(minute->us[line], 100, minute->scanned_us);
}

static int64_t waiting(const struct minute *minute)
{
	return sum(average(minute, 1), sum(average(minute, 2), average(minute, 3)));
}

static int time_compare(const void *a, const void *b)
{
	int64_t x = ((const struct minute *)a)->number, y = ((const struct minute *)b)->number;

	return x < y ? -1 : x > y;
}

static int waiting_compare(const void *a, const void *b)
{
	int64_t x = waiting(a), y = waiting(b);

	return x != y ? (x > y ? -1 : 1) : time_compare(a, b);
}

static void nothing_told(const char *lines)
{
	(void)lines;
}

/* Adds the first finding of a minute. */
static void finding_add(struct text *line, const struct worst_minutes *worst, int64_t number)
{
	struct config config = *worst->report->options;
	struct recording_part *part = &config.part;
	int64_t from_us = number * MINUTE_US;
	struct error unsaid = {0};
	size_t before = line->length;

	config.mode = MODE_FORMAT;
	config.format = &renderer_finding;
	if (part->from_us == ABSENT || part->from_us < from_us)
		part->from_us = from_us;
	if (part->until_us == ABSENT || part->until_us > from_us + MINUTE_US)
		part->until_us = from_us + MINUTE_US;
	run_into(line, &config, worst->report->open_source, nothing_told, &unsaid);
	error_done(&unsaid);
	if (line->length == before)
		text_add_string(line, "nothing stands out");
}

static void minutes_end(void *state, struct report *report)
{
	struct worst_minutes *worst = state;
	struct minute *minutes = worst->minutes.rows;
	size_t count = worst->minutes.count;

	(void)report;
	text_clear(&worst->worst);
	if (count < MINUTES_LEAST)
		return;
	qsort(minutes, count, sizeof(*minutes), waiting_compare);
	for (size_t i = 0; i < count && i < WORST_MAX; i++) {
		char local[CLOCK_LOCAL_SIZE];

		if (waiting(&minutes[i]) < WAITING_LEAST)
			break;
		clock_format_local(minutes[i].number * MINUTE_US, local);
		text_add_format(&worst->worst, "  %.16s  ", local);
		finding_add(&worst->worst, worst, minutes[i].number);
		text_add_char(&worst->worst, '\n');
	}
	qsort(minutes, count, sizeof(*minutes), time_compare);
}

/* What a sign stands for: some minutes. */
struct sign {
	int64_t scanned_us, us[LINES];
};

/* Adds up the minutes of each sign. Returns the most threads of a state in one, in hundredths. */
static int64_t signs_make(const struct worst_minutes *worst, int64_t merged, struct sign *signs)
{
	const struct minute *minutes = worst->minutes.rows;
	int64_t most = 0;

	for (size_t i = 0; i < worst->minutes.count; i++) {
		struct sign *sign = &signs[(minutes[i].number - minutes[0].number) / merged];

		sign->scanned_us = sum(sign->scanned_us, minutes[i].scanned_us);
		for (int line = 0; line < LINES; line++) {
			int64_t threads;

			sign->us[line] = sum(sign->us[line], minutes[i].us[line]);
			threads = ratio(sign->us[line], 100, sign->scanned_us);
			most = threads > most ? threads : most;
		}
	}
	return most;
}

/* Adds the scale: "Threads from 2026-11-29 16:42 to 16:49 CET, a minute a sign; @: 4.22". */
static void scale_add(struct text *out, int64_t first, int64_t end, int64_t merged, int64_t most)
{
	char from[CLOCK_LOCAL_SIZE], until[CLOCK_LOCAL_SIZE];
	bool same_day;

	clock_format_local(first * MINUTE_US, from);
	clock_format_local(end * MINUTE_US, until);
	same_day = !memcmp(from, until, CLOCK_LOCAL_TIME);
	text_add_format(out, "\nThreads from %.16s to %.*s %s, ", from, same_day ? 5 : 16,
			until + (same_day ? CLOCK_LOCAL_TIME : 0), until + CLOCK_LOCAL_ZONE);
	if (merged == 1)
		text_add_string(out, "a minute a sign; @: ");
	else
		text_add_format(out, "%lld minutes a sign; @: ", (long long)merged);
	text_add_decimals(out, most, 2);
	text_add_char(out, '\n');
}

static void minutes_below(struct text *out, const struct interval *interval, void *state)
{
	const struct worst_minutes *worst = state;
	const struct minute *minutes = worst->minutes.rows;
	int64_t first, span, merged, fit, most;
	struct sign *signs;
	size_t count;

	if (worst->minutes.count < MINUTES_LEAST)
		return;
	first = minutes[0].number;
	span = minutes[worst->minutes.count - 1].number - first + 1;
	fit = interval->width && interval->width < SIGNS_MAX + SIGNS_BESIDE
		      ? (int64_t)interval->width - SIGNS_BESIDE
		      : SIGNS_MAX;
	merged = (span - 1) / (fit > 1 ? fit : 1) + 1;
	count = (size_t)((span - 1) / merged + 1);
	signs = memory_get(count * sizeof(*signs));
	most = signs_make(worst, merged, signs);
	scale_add(out, first, first + merged * (int64_t)count, merged, most);
	for (int line = 0; line < LINES; line++) {
		text_add_format(out, "  %-2s |", state_row(line_states[line])->name);
		for (size_t i = 0; i < count; i++)
			text_add_char(
				out,
				shade_of(ratio(signs[i].us[line], 100, signs[i].scanned_us), most));
		text_add_string(out, "|\n");
	}
	free(signs);
	if (worst->worst.length)
		text_add_format(out, "Most threads waited in these minutes:\n%s",
				text_string(&worst->worst));
}

static void minutes_clear(void *state)
{
	struct worst_minutes *worst = state;

	keyed_empty(&worst->minutes);
}

static void minutes_done(void *state)
{
	struct worst_minutes *worst = state;

	keyed_done(&worst->minutes);
	text_done(&worst->worst);
}

const struct report_part minutes_part = {.bytes = sizeof(struct worst_minutes),
					 .begin = minutes_begin,
					 .add = minutes_add,
					 .collect = minutes_collect,
					 .end = minutes_end,
					 .below = minutes_below,
					 .clear = minutes_clear,
					 .done = minutes_done};
