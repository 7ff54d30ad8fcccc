/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "top.h"
#include "keeper/keeper.h"
#include "cli/run.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/output.h"
#include "base/progress.h"
#include "base/signals.h"
#include "sample/proc_values.h"
#include "kernel/own_probe.h"
#include "live/trace_table.h"
#include "screen/command.h"
#include "screen/draw.h"
#include "screen/feed.h"
#include "screen/key.h"
#include "screen/saved.h"
#include "screen/screen.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define TEXT_ROWS 40
#define TEXT_COLUMNS 120
#define SHARES_OF_SCREEN 16 /* of 100 scans in a window: 1600 samples */

struct top {
	const struct config *config;
	struct query query;
	source_opener *open_source;
	struct filter *filter; /* filter of the source */
	struct source *source;
	struct history *history;
	struct feed feed;
	struct view *view;
	struct shown_source reported;
	struct host_log host_log;
	struct saved_views views;
	struct text views_path; /* path of the user's own views */
	/* options of the source, as words of a command line; and these with the traces that a
	 * screen needs */
	struct text base, base_traced;
	int64_t reported_us;
};

/* Finds the options that select threads before anything is kept. */
static void base_find(struct top *top)
{
	const struct query *query = &top->query;
	const struct own_probes *own = top->config->live.own;
	const struct trace_kind *kinds[TRACE_KINDS_MAX];
	size_t kind_count = trace_kinds_list(trace_kinds_of_screen(), kinds);
	const struct {
		const char *option, *value;
	} words[] = {
		{"-p", query->process},	     {"-t", query->threads},
		{"-u", query->user},	     {"-c", query->comm},
		{"--cgroup", query->cgroup}, {"--trace", top->config->trace},
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (!words[i].value)
			continue;
		text_add_format(&top->base, " %s ", words[i].option);
		text_add_word(&top->base, words[i].value);
	}
	for (unsigned int i = 0; own && i < own->count; i++) {
		text_add_format(&top->base, " %s ", own->items[i].probe.option);
		text_add_word(&top->base, own->items[i].probe.text);
	}
	if (top->config->live.descendants)
		text_add_string(&top->base, " -r");
	if (query->on_cpu)
		text_add_string(&top->base, " --on-cpu");
	if (query->off_cpu)
		text_add_string(&top->base, " --off-cpu");
	if (top->base.length)
		top->reported.base = text_string(&top->base);
	text_add_format(&top->base_traced, "%s --trace ", text_string(&top->base));
	for (size_t i = 0; i < kind_count; i++)
		text_add_format(&top->base_traced, "%s%s", i ? "," : "", kinds[i]->name);
}

static void source_close(struct top *top)
{
	if (top->source)
		top->source->close(top->source);
	if (top->filter)
		filter_done(top->filter);
	free(top->filter);
	top->source = NULL;
	top->filter = NULL;
}

/* Changes to that source. Samples of the previous one that still wait are taken first. */
static void source_change(struct top *top, struct source *source)
{
	struct error e = {0};

	feed_finish(&top->feed, clock_monotonic_ns(), &e); /* if it fails, the new source goes on */
	error_done(&e);
	feed_change(&top->feed, source);
}

/* Opens a source that samples at least what is wished, and closes the previous one, whose probes go
 * on until then. 0, or -errno with e: the previous one goes on. */
static int source_open(struct top *top, const struct screen_wish *wish, struct error *e)
{
	struct config config = *top->config;
	struct filter *filter = memory_get(sizeof(*filter));
	struct query query = top->query;
	struct source *source;
	int err;

	query.filter = NULL; /* the view has its own filter */
	query.all_states = wish->all_states;
	/* its traces are those of --trace, else those that a screen needs */
	if (wish->traces && !config.live.traces) {
		config.live.distributions = true;
		config.live.traces = trace_kinds_of_screen();
	}
	err = query_filter(&query, filter, e);
	if (!err)
		err = top->open_source(&config, filter, wish->needs, &source, e);
	if (err) {
		filter_done(filter);
		free(filter);
		return err;
	}
	if (top->source)
		source_change(top, source);
	else
		feed_begin(&top->feed, source, top->history);
	source_close(top);
	top->source = source;
	top->filter = filter;
	top->feed.traces = config.live.traces;
	top->reported.needs = wish->needs;
	top->reported.all_states = wish->all_states;
	top->reported.traces = config.live.traces;
	if (config.live.traces && !top->config->live.traces)
		top->reported.base = text_string(&top->base_traced);
	return 0;
}

/* Opens the source for all that the screen may need later: its filter has no expression, and for a
 * recording, it has all states. */
static int source_begin(struct top *top, struct error *e)
{
	const struct question *question = &top->view->now;
	struct filter filter = {0};
	int err = question_filter(question, &filter, e);
	uint64_t needs = NEEDS_SHOWN | finding_lines_needs() | column_list_needs(&question->list) |
			 filter_needs(&filter);
	struct screen_wish wish = {.all_states = question->all_states || top->config->replay ||
						 filter_wants_idle(&filter)};

	if (top->config->replay)
		needs = ~(uint64_t)NEEDS_PROC_VALUES;
	wish.needs = sample_needs_close(needs);
	filter_done(&filter);
	return err ? err : source_open(top, &wish, e);
}

static int columns_check(const struct view *view, struct error *e)
{
	for (size_t i = 0; i < view->now.list.count; i++)
		if (!history_keeps(view->now.list.items[i]))
			return error_set(e, EINVAL, EXIT_USAGE,
					 "--top does not keep the column %s: a report shows it "
					 "(tsnap -G %s)",
					 view->now.list.items[i]->name,
					 view->now.list.items[i]->name);
	return 0;
}

/* Adds the path of the user's own file of that name; adds nothing if the user has no directory for
 * it. */
static void add_own_path(struct text *text, const char *name)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	if (config && *config == '/')
		text_add_format(text, "%s/tsnap/%s", config, name);
	else if (home && *home == '/')
		text_add_format(text, "%s/.config/tsnap/%s", home, name);
}

/* Handles the result of reading a settings file: a wrong file ends tsnap; one that can't be read
 * does not, and the first screen says so. */
static int setting_took(struct top *top, int err, struct error *e)
{
	if (err == -EINVAL || !err)
		return err;
	if (!top->view->message[0])
		view_say(top->view, true, "%s: tsnap goes on without this file", e->line);
	error_done(e);
	*e = (struct error){0};
	return 0;
}

static int views_read(struct top *top, const char *path, struct error *e)
{
	return setting_took(top, saved_views_read(&top->views, path, e), e);
}

static int keys_read(struct top *top, const char *path, struct error *e)
{
	return setting_took(top, bindings_read(&top->view->bindings, path, e), e);
}

/* Reads tsnap's own views, the host's and the user's; and keys. */
static int settings_read(struct top *top, struct error *e)
{
	struct text keys = {0};
	int err;

	saved_views_begin(&top->views);
	top->view->views = &top->views;
	bindings_begin(&top->view->bindings);
	add_own_path(&top->views_path, "views");
	add_own_path(&keys, "keys");
	err = views_read(top, "/etc/tsnap/views", e);
	if (!err && top->views_path.length) {
		top->view->views_path = text_string(&top->views_path);
		err = views_read(top, top->view->views_path, e);
	}
	if (!err)
		err = keys_read(top, "/etc/tsnap/keys", e);
	if (!err && keys.length)
		err = keys_read(top, text_string(&keys), e);
	text_done(&keys);
	return err;
}

static int top_open(struct top *top, source_opener *open_source, void (*report)(const char *lines),
		    struct error *e)
{
	const struct config *config = top->config;
	int err = view_init(top->view, &top->query, e);

	top->open_source = open_source;
	top->history =
		history_new(HISTORY_BYTES_DEFAULT, config->replay ? 0 : HISTORY_AGE_DEFAULT_US);
	if (!err)
		err = settings_read(top, e);
	if (!err)
		err = columns_check(top->view, e);
	base_find(top);
	if (!err)
		err = source_begin(top, e);
	if (err)
		return err;
	keeper_guard_begin();
	if (config->interval_us)
		top->view->refresh_us = config->interval_us > VIEW_REFRESH_LEAST_US
						? config->interval_us
						: VIEW_REFRESH_LEAST_US;
	top->reported.recording = config->replay;
	/* counts are of the whole host */
	if (!config->replay && !top->base.length)
		top->reported.host_log = &top->host_log;
	feed_describe(&top->feed, &top->reported);
	if (top->reported.status.remarks)
		report(top->reported.status.remarks);
	return 0;
}

/* Adds scans until that time has passed; 0: to the end. Returns 1; 0 at the end, or -errno. */
static int scans_add(struct top *top, int64_t us, struct error *e)
{
	int64_t end_ns = clock_monotonic_ns() + us * NS_PER_US;
	int more = 1;

	while (more > 0 && !signals_stop() && (!us || clock_monotonic_ns() < end_ns)) {
		more = feed_next(&top->feed, e);
		if (more == -EINTR)
			more = 1;
	}
	return more;
}

static size_t size_of(const char *variable, size_t terminal, size_t otherwise)
{
	const char *typed = getenv(variable);
	long number = typed ? strtol(typed, NULL, 10) : 0;

	if (number > 0 && number < 10000)
		return (size_t)number;
	return terminal ? terminal : otherwise;
}

/* Prints one screen as text. */
static int text_print(struct top *top, struct error *e)
{
	struct cells cells = {.ascii = top->config->ascii};
	struct shown shown = {0};
	struct winsize size = {0};
	struct text text = {0};
	int err;

	if (isatty(STDOUT_FILENO))
		ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	cells_clear(&cells, size_of("LINES", size.ws_row, TEXT_ROWS),
		    size_of("COLUMNS", size.ws_col, TEXT_COLUMNS));
	feed_describe(&top->feed, &top->reported);
	shown.source = top->reported;
	shown_fill(&shown, top->history, &top->view->now, draw_band_steps(cells.columns));
	finding_lines_fill(&shown, &top->view->now, cells.columns);
	draw(&cells, top->view, &shown);
	cells_text(&cells, &text);
	err = output_write(STDOUT_FILENO, text_string(&text), text.length);
	text_done(&text);
	shown_done(&shown);
	cells_done(&cells);
	return err && err != -EPIPE
		       ? error_set(e, -err, EXIT_FAILED, "standard output: %s", strerror(-err))
		       : err;
}

/* Prints what was sampled before a call that does not end (keeper/keeper.h). A screen needs no such
 * thing: its own thread goes on. */
static void text_save(void *of)
{
	struct error e = {0};

	text_print(of, &e);
	error_done(&e);
}

/* Prints screens as text: the end of a recording; live, one after the window, then one each
 * refresh. */
static int top_text(struct top *top, struct error *e)
{
	int64_t count = top->config->replay ? 1 : top->config->count;
	int64_t wait_us = top->config->replay ? 0 : top->view->now.window_us;
	int more = 1, err = 0;

	top->source->shares = question_is_of_threads(&top->view->now) ? 0 : SHARES_OF_SCREEN;
	for (int64_t i = 0; !err && more > 0 && !(i && signals_stop()) && (!count || i < count);
	     i++) {
		more = scans_add(top, wait_us, e);
		if (more >= 0)
			err = text_print(top, e);
		wait_us = top->view->refresh_us;
	}
	return more < 0 ? more : err == -EPIPE ? 0 : err;
}

static bool is_ascii(const struct config *config)
{
	return config->ascii || strcmp(nl_langinfo(CODESET), "UTF-8") != 0;
}

/* Opens a source that samples more, if the screen needs that. */
static void source_load(struct top *top, struct screen *screen)
{
	struct screen_wish wish;
	struct error e = {0};

	if (!screen_wants(screen, &wish))
		return;
	wish.needs |= top->reported.needs;
	wish.all_states |= top->reported.all_states;
	wish.traces |= top->reported.traces;
	if (source_open(top, &wish, &e))
		snprintf(top->reported.error, sizeof(top->reported.error), "Not loaded: %s",
			 e.line);
	else
		top->reported.error[0] = '\0';
	error_done(&e);
	top->reported_us = 0;
}

/* Informs the screen about the source once a second, and about its end. more: result of
 * feed_next(). */
static void top_report(struct top *top, struct screen *screen, int more, const struct error *e)
{
	int64_t now_us = clock_monotonic_ns() / NS_PER_US;

	if (more <= 0 && !top->reported.ended) {
		top->reported.ended = true;
		if (more < 0)
			snprintf(top->reported.error, sizeof(top->reported.error),
				 "Sampling has ended: %s", e->line);
	} else if (now_us - top->reported_us < US_PER_SECOND) {
		return;
	}
	top->reported_us = now_us;
	feed_describe(&top->feed, &top->reported);
	screen_describe(screen, &top->reported);
}

/* Runs the screen, which has a thread of its own: sampling never waits for a terminal. */
static int top_screen(struct top *top, struct error *e)
{
	struct screen *screen;
	int more = 1, err = 0;

	if (top->config->replay)
		more = scans_add(top, 0, e);
	if (more < 0)
		return more;
	progress_silence();
	err = screen_open(&screen, top->history, top->view, is_ascii(top->config), e);
	if (err)
		return err;
	feed_describe(&top->feed, &top->reported);
	screen_describe(screen, &top->reported);
	while (!signals_stop() && !screen_ended(screen)) {
		top->source->shares = screen_is_of_threads(screen) ? 0 : SHARES_OF_SCREEN;
		if (more > 0)
			more = feed_next(&top->feed, e);
		else
			clock_sleep_until(clock_monotonic_ns() + NS_PER_SECOND / 20);
		if (more == -EINTR)
			more = 1;
		if (more > 0)
			source_load(top, screen);
		top_report(top, screen, more, e);
	}
	screen_close(screen);
	return more < 0 ? more : 0;
}

int top(const struct config *config, source_opener *open_source, void (*report)(const char *lines),
	struct error *e)
{
	struct top top = {.config = config, .query = config_query(config)};
	int err = 0;

	setlocale(LC_CTYPE, "");
	if (!config->text)
		err = screen_check(e);
	if (err)
		return err;
	top.view = memory_get(sizeof(*top.view));
	err = top_open(&top, open_source, report, e);
	if (signals_stop() && (err || config->text)) {
		err = 0; /* stopped before there was anything to show */
		report(NOTHING_SAMPLED);
	} else if (!err) {
		keeper_saves(config->text ? text_save : NULL, &top);
		err = config->text ? top_text(&top, e) : top_screen(&top, e);
		keeper_saves(NULL, NULL);
	}
	source_close(&top);
	history_free(top.history);
	host_log_done(&top.host_log);
	text_done(&top.base);
	text_done(&top.base_traced);
	text_done(&top.views_path);
	saved_views_done(&top.views);
	free(top.view);
	return err;
}
