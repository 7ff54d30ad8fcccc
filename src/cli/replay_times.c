/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The times of a replay, below its findings: how many threads worked and waited then, and the
 * minutes in which most waited, each with its own first finding; with --by-time, all its steps. Who
 * looks into a recording often does not know when it happened.
 *
 * The finding of a step is that of another replay, of this step alone: a recording is read without
 * its other frames.
 */
#include "cli/part_table.h"
#include "cli/run.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/signals.h"
#include "render/renderer.h"
#include "report/value.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MINUTE_US (60 * US_PER_SECOND)
#define WORST_MAX 5
#define STEPS_LEAST 3 /* fewer say no more than the whole */
#define LINES 4
#define SIGNS_MAX 100
#define SIGNS_BESIDE 8	 /* "  ON |" before the signs, "|" behind them, and a free column */
#define WAITING_LEAST 10 /* hundredths of threads that make a step bad */

static const enum thread_state_kind line_states[LINES] = {STATE_ON, STATE_RQ, STATE_DISK,
							  STATE_SLEEP};

struct step {
	int64_t number; /* since 1970 */
	int64_t scanned_us, us[LINES];
};

struct replay_times {
	struct report *report;
	int64_t step_us;
	bool all;	    /* all steps are shown, not the worst ones */
	struct keyed steps; /* struct step, by number; sorted when filled */
	int64_t us[LINES];  /* of the present scan */
	struct text lines;  /* a line for each step that is shown */
};

/* True if the recording can be read once more: no pipe. */
static bool readable_again(const struct config *config)
{
	struct stat file;

	return config->replay && strcmp(config->replay, "-") != 0 && !stat(config->replay, &file) &&
	       (S_ISREG(file.st_mode) || S_ISDIR(file.st_mode));
}

static int times_begin(void *state, struct report *report)
{
	struct replay_times *times = state;
	const struct config *config = report->options;

	times->report = report;
	times->all = report->config->findings_step_us;
	times->step_us = times->all ? report->config->findings_step_us : MINUTE_US;
	return report->renderer == &renderer_report && report->config->findings &&
	       !config->interval_us && !config->count && readable_again(config);
}

static void times_add(void *state, const struct sample *sample, struct exact_note note)
{
	struct replay_times *times = state;

	(void)note;
	for (int i = 0; i < LINES; i++)
		if (sample->now.state == line_states[i])
			times->us[i] = sum(times->us[i], sample->scan.weight_us);
}

static int times_collect(void *state, struct report *report, bool all)
{
	struct replay_times *times = state;
	const struct scan *scan = report->scan;
	struct step *step;

	if (all)
		return 0;
	step = keyed_put(&times->steps, sizeof(*step), (uint64_t)(scan->time_us / times->step_us),
			 NULL);
	step->number = scan->time_us / times->step_us;
	step->scanned_us = sum(step->scanned_us, scan->weight_us);
	for (int i = 0; i < LINES; i++)
		step->us[i] = sum(step->us[i], times->us[i]);
	memset(times->us, 0, sizeof(times->us));
	return 0;
}

/* Returns hundredths of threads in an average scan. */
static int64_t average(const struct step *step, int line)
{
	return ratio(step->us[line], 100, step->scanned_us);
}

static int64_t waiting(const struct step *step)
{
	return sum(average(step, 1), sum(average(step, 2), average(step, 3)));
}

static int time_compare(const void *a, const void *b)
{
	int64_t x = ((const struct step *)a)->number, y = ((const struct step *)b)->number;

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

/* Returns how much of a local time steps need: to minutes, seconds, or milliseconds. */
static int time_width(const struct replay_times *times)
{
	return times->step_us % MINUTE_US == 0 ? 16 : times->step_us % US_PER_SECOND == 0 ? 19 : 23;
}

/* Adds a line with the first finding of a step. */
static void finding_add(struct replay_times *times, int64_t number)
{
	struct config config = *times->report->options;
	struct recording_part *part = &config.part;
	struct text *line = &times->lines;
	int64_t from_us = number * times->step_us;
	char local[CLOCK_LOCAL_SIZE];
	struct error unsaid = {0};
	size_t before;

	clock_format_local(from_us, local);
	text_add_format(line, "  %.*s  ", time_width(times), local);
	before = line->length;
	config.mode = MODE_FORMAT;
	config.format = &renderer_finding;
	config.report.condition.given = false;
	if (part->from_us == ABSENT || part->from_us < from_us)
		part->from_us = from_us;
	if (part->until_us == ABSENT || part->until_us > from_us + times->step_us)
		part->until_us = from_us + times->step_us;
	run_into(line, &config, times->report->open_source, nothing_told, &unsaid);
	error_done(&unsaid);
	if (line->length == before)
		text_add_string(line, "nothing stands out");
	text_add_char(line, '\n');
}

static void times_end(void *state, struct report *report)
{
	struct replay_times *times = state;
	struct step *steps = times->steps.rows;
	size_t count = times->steps.count;

	(void)report;
	text_clear(&times->lines);
	if (!times->all && count < STEPS_LEAST)
		return;
	qsort(steps, count, sizeof(*steps), times->all ? time_compare : waiting_compare);
	for (size_t i = 0; i < count && (times->all || i < WORST_MAX); i++) {
		if (signals_stop() || (!times->all && waiting(&steps[i]) < WAITING_LEAST))
			break;
		finding_add(times, steps[i].number);
	}
	qsort(steps, count, sizeof(*steps), time_compare);
}

/* What a sign stands for: some steps. */
struct sign {
	int64_t scanned_us, us[LINES];
};

/* Adds up the steps of each sign. Returns the most threads of a state in one, in hundredths. */
static int64_t signs_make(const struct replay_times *times, int64_t merged, struct sign *signs)
{
	const struct step *steps = times->steps.rows;
	int64_t most = 0;

	for (size_t i = 0; i < times->steps.count; i++) {
		struct sign *sign = &signs[(steps[i].number - steps[0].number) / merged];

		sign->scanned_us = sum(sign->scanned_us, steps[i].scanned_us);
		for (int line = 0; line < LINES; line++) {
			int64_t threads;

			sign->us[line] = sum(sign->us[line], steps[i].us[line]);
			threads = ratio(sign->us[line], 100, sign->scanned_us);
			most = threads > most ? threads : most;
		}
	}
	return most;
}

/* Adds the scale: "Threads from 2026-11-29 16:42 to 16:49 CET, a minute a sign; @: 4.22". */
static void scale_add(struct text *out, const struct replay_times *times, int64_t end,
		      int64_t merged, int64_t most)
{
	const struct step *steps = times->steps.rows;
	int64_t sign_us = times->step_us * merged;
	char from[CLOCK_LOCAL_SIZE], until[CLOCK_LOCAL_SIZE];
	int width = time_width(times), same;

	clock_format_local(steps[0].number * times->step_us, from);
	clock_format_local(end * times->step_us, until);
	same = memcmp(from, until, CLOCK_LOCAL_TIME) ? 0 : CLOCK_LOCAL_TIME;
	text_add_format(out, "\nThreads from %.*s to %.*s %s, ", width, from, width - same,
			until + same, until + CLOCK_LOCAL_ZONE);
	if (sign_us == MINUTE_US)
		text_add_string(out, "a minute");
	else if (sign_us % MINUTE_US == 0)
		text_add_format(out, "%lld minutes", (long long)(sign_us / MINUTE_US));
	else
		text_add_duration(out, sign_us * NS_PER_US);
	text_add_string(out, " a sign; @: ");
	text_add_decimals(out, most, 2);
	text_add_char(out, '\n');
}

static void times_below(struct text *out, const struct interval *interval, void *state)
{
	const struct replay_times *times = state;
	const struct step *steps = times->steps.rows;
	int64_t first, span, merged, fit, most;
	struct sign *signs;
	size_t count;

	if (!times->lines.length && times->steps.count < STEPS_LEAST)
		return;
	first = steps[0].number;
	span = steps[times->steps.count - 1].number - first + 1;
	fit = interval->width && interval->width < SIGNS_MAX + SIGNS_BESIDE
		      ? (int64_t)interval->width - SIGNS_BESIDE
		      : SIGNS_MAX;
	merged = (span - 1) / (fit > 1 ? fit : 1) + 1;
	count = (size_t)((span - 1) / merged + 1);
	signs = memory_get(count * sizeof(*signs));
	most = signs_make(times, merged, signs);
	scale_add(out, times, first + merged * (int64_t)count, merged, most);
	for (int line = 0; line < LINES; line++) {
		text_add_format(out, "  %-2s |", state_row(line_states[line])->name);
		for (size_t i = 0; i < count; i++)
			text_add_char(
				out,
				shade_of(ratio(signs[i].us[line], 100, signs[i].scanned_us), most));
		text_add_string(out, "|\n");
	}
	free(signs);
	if (times->lines.length)
		text_add_format(out, "%s\n%s",
				times->all ? "The first finding of each step:"
					   : "Most threads waited in these minutes:",
				text_string(&times->lines));
}

static void times_clear(void *state)
{
	struct replay_times *times = state;

	keyed_empty(&times->steps);
}

static void times_done(void *state)
{
	struct replay_times *times = state;

	keyed_done(&times->steps);
	text_done(&times->lines);
}

const struct report_part times_part = {.bytes = sizeof(struct replay_times),
				       .begin = times_begin,
				       .add = times_add,
				       .collect = times_collect,
				       .end = times_end,
				       .below = times_below,
				       .clear = times_clear,
				       .done = times_done};
