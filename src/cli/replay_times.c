/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The times of a replay, below its findings: how many threads worked and waited then, and the
 * minutes in which most waited, each with its own first finding; with --by-time, all its steps. Who
 * looks into a recording often does not know when it happened.
 *
 * The finding of a minute is the one that the recorder found. Of other steps, of some of the
 * threads, and of what an earlier version recorded, it is that of another replay, of the step
 * alone: a recording is read without its other frames.
 */
#include "cli/part_table.h"
#include "cli/run.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/signals.h"
#include "recording/recording.h"
#include "render/renderer.h"
#include "report/value.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define MINUTE_US (60 * US_PER_SECOND)
#define WORST_MAX 5
#define TIME_COLUMNS 20 /* before the finding of a minute: "  2026-11-29 14:05  " */
#define STEPS_LEAST 3	/* fewer say no more than the whole */
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

/* The first finding of a minute, as the recorder found it. */
struct recorded_finding {
	int64_t minute; /* since 1970 */
	char *text;	/* "": nothing stood out */
};

struct replay_times {
	struct report *report;
	struct keyed recorded; /* struct recorded_finding, by minute */
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
	return (report->renderer == &renderer_report || report->renderer == &renderer_html) &&
	       report->config->findings && !config->interval_us && !config->count &&
	       readable_again(config);
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

static void recorded_take(void *to, const struct finding_entry *entry)
{
	struct replay_times *times = to;
	int64_t minute = (entry->begin_us + (entry->end_us - entry->begin_us) / 2) / MINUTE_US;
	struct text original = {0}, text = {0};
	struct recorded_finding *finding;
	bool added;

	/* others are about less than their minute: the recorder began or ended then */
	if (entry->rank > 1 || entry->end_us - entry->begin_us < MINUTE_US * 9 / 10)
		return;
	finding = keyed_put(&times->recorded, sizeof(*finding), (uint64_t)minute, &added);
	if (!added)
		return;
	finding->minute = minute;
	/* the recording may come from anybody */
	text_add_original(&original, entry->text);
	text_add_printable(&text, text_string(&original));
	text_shorten(&text, times->report->interval->width > TIME_COLUMNS
				    ? times->report->interval->width - TIME_COLUMNS
				    : 0);
	finding->text = text_take(&text);
	text_done(&original);
}

/* Reads the findings of the recording, if they are about the same threads. */
static void recorded_read(struct replay_times *times)
{
	const struct config *config = times->report->options;
	const char **paths = config_replay_paths(config);
	struct error unsaid = {0};

	if (times->step_us == MINUTE_US && !query_selects(&times->report->query))
		recording_findings(paths, &config->part, recorded_take, times, &unsaid);
	error_done(&unsaid);
	free(paths);
}

/* Adds the first finding of a step as another replay finds it. */
static void finding_replay(struct replay_times *times, int64_t from_us)
{
	struct config config = *times->report->options;
	struct recording_part *part = &config.part;
	struct error unsaid = {0};

	config.mode = MODE_FORMAT;
	config.format = &renderer_finding;
	config.report.condition.given = false;
	if (part->from_us == ABSENT || part->from_us < from_us)
		part->from_us = from_us;
	if (part->until_us == ABSENT || part->until_us > from_us + times->step_us)
		part->until_us = from_us + times->step_us;
	run_into(&times->lines, &config, times->report->open_source, nothing_told, &unsaid);
	error_done(&unsaid);
}

/* Adds a line with the first finding of a step. */
static void finding_add(struct replay_times *times, int64_t number)
{
	const struct recorded_finding *recorded =
		keyed_find(&times->recorded, sizeof(*recorded), (uint64_t)number);
	struct text *line = &times->lines;
	char local[CLOCK_LOCAL_SIZE];
	size_t before;

	clock_format_local(number * times->step_us, local);
	text_add_format(line, "  %.*s  ", time_width(times), local);
	before = line->length;
	if (recorded)
		text_add_string(line, recorded->text);
	else
		finding_replay(times, number * times->step_us);
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
	recorded_read(times);
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

/* Adds a line for each state, with a sign for some steps each. */
static void signs_add(struct text *out, const struct replay_times *times,
		      const struct interval *interval)
{
	const struct step *steps = times->steps.rows;
	int64_t first, span, merged, fit, most;
	struct sign *signs;
	size_t count;

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
}

static void times_below(struct text *out, const struct interval *interval, void *state)
{
	const struct replay_times *times = state;

	/* a page has a picture of its own */
	if (times->report->renderer == &renderer_report &&
	    (times->lines.length || times->steps.count >= STEPS_LEAST))
		signs_add(out, times, interval);
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

	for (size_t i = 0; i < times->recorded.count; i++)
		free(((struct recorded_finding *)times->recorded.rows)[i].text);
	keyed_done(&times->recorded);
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
