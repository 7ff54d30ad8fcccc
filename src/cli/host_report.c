/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a replay of recordings of several hosts reports: the findings of each host, as of one alone,
 * then which programs waited for another host, and what those did that they waited for. Findings
 * are of one host, as its CPUs and the ids of its threads are: a sentence names the finding of the
 * other host that its samples there belong to.
 */
#include "cli/hosts.h"
#include "base/signals.h"
#include "cli/part_table.h"
#include "render/render_rows.h"
#include "render/renderer.h"
#include "report/findings.h"
#include "report/value.h"

#include <errno.h>

struct host_report {
	struct replayed_hosts *hosts;
	struct joined_hosts *found; /* NULL: it is of one of them alone */
	size_t told;		    /* waits for other hosts that are told */
};

static int hosts_begin(void *state, struct report *report)
{
	struct host_report *of = state;

	of->hosts = report->options->hosts;
	return of->hosts && !report->config->condition.given;
}

static int hosts_opened(void *state, struct report *report)
{
	struct host_report *of = state;

	of->found = hosts_joined(report->source);
	return 0;
}

/* Notes the order of the findings of one host, for what leads to them from others. */
static void ranks_note(struct replayed_hosts *hosts, const struct findings *findings)
{
	struct index *ranks = &hosts->ranks[hosts->at];

	index_empty(ranks);
	for (size_t i = 0; i < findings->count; i++)
		if (finding_at(findings, i)->key)
			*index_put(ranks, finding_at(findings, i)->key, NULL) = i + 1;
}

static void hosts_end(void *state, struct report *report)
{
	struct host_report *of = state;
	const struct findings *findings = report_state(report, &findings_part);

	if (of->found)
		of->told = host_waits_sort(&of->found->waits, report->tally.elapsed_us);
	else if (findings && of->hosts->at < of->hosts->count)
		ranks_note(of->hosts, findings);
}

static void hosts_clear(void *state)
{
	struct host_report *of = state;

	if (of->found)
		host_waits_clear(&of->found->waits);
}

/* The number of a host's finding; 0: none. */
static int64_t rank_of(const struct host_report *of, size_t host, uint64_t key)
{
	const uint64_t *rank = key ? index_find(&of->hosts->ranks[host], key) : NULL;

	return rank ? (int64_t)*rank : 0;
}

/* --- words */

static void ms_add(struct text *line, int64_t us)
{
	text_add_decimals(line, us, 3);
	text_add_string(line, " ms");
}

static void clock_add(struct text *line, const struct host_join *join, size_t host)
{
	const struct host_clock *clock = &join->clocks[host];
	int64_t us = clock->offset.us;

	if (!clock->known) {
		text_add_format(line,
				"Clocks: how that of %s differs is not known, as too few waits "
				"were seen at both ends, or several differences would do: it is "
				"taken as it is.",
				join->hosts[host].name);
		return;
	}
	text_add_format(line, "Clocks: that of %s is ", join->hosts[host].name);
	ms_add(line, us < 0 ? -us : us);
	text_add_format(line, " %s that of %s (", us < 0 ? "behind" : "ahead of",
			join->hosts[clock->by].name);
	ms_add(line, clock->offset.low_us);
	text_add_string(line, " to ");
	ms_add(line, clock->offset.high_us);
	text_add_format(line, ", by %zu waits that both ends saw).", clock->offset.pairs);
}

static void ends_add(struct text *line, const struct host_join *join)
{
	const int64_t *ends = join->ends;
	int64_t all = ends[JOIN_THREAD] + ends[JOIN_PROCESS] + ends[JOIN_NOWHERE];

	if (!all) {
		text_add_string(line, "No thread waited for a connection that leaves its host.");
	} else if (all == ends[JOIN_NOWHERE]) {
		text_add_string(line, "No connection is in two of these recordings, so chains end "
				      "at their host (addresses that are translated on the way do "
				      "not match).");
	} else {
		text_add_string(line, "Of the waits for other hosts ");
		text_add_decimals(line, ratio(ends[JOIN_THREAD], 1000, all), 1);
		text_add_string(line, "% lead to the thread that served them, ");
		text_add_decimals(line, ratio(ends[JOIN_PROCESS], 1000, all), 1);
		text_add_string(line, "% to its process, and ");
		text_add_decimals(line, ratio(ends[JOIN_NOWHERE], 1000, all), 1);
		text_add_string(line, "% to nobody in these recordings. Each is a meeting of two "
				      "scans: trust shares of many, not single ones.");
	}
}

/* Adds what the recordings were joined by, a line each. */
static void grounds_add(struct text *out, const struct interval *interval,
			const struct joined_hosts *found)
{
	struct text line = {0};

	ends_add(&line, &found->join);
	interval_add_line(out, interval, &line);
	for (size_t i = 1; i < found->join.host_count; i++) {
		clock_add(&line, &found->join, i);
		interval_add_line(out, interval, &line);
	}
	for (size_t i = 0; i < found->join.host_count; i++) {
		if (!(found->lacking >> i & 1))
			continue;
		text_add_format(&line,
				"The recording of %s lacks columns that chains are joined "
				"by (record with -G chains,why,connection,serves).",
				found->join.hosts[i].name);
		interval_add_line(out, interval, &line);
	}
}

static const struct host_wait *wait_at(const struct host_report *of, size_t index)
{
	return (const struct host_wait *)of->found->waits.waits.rows + index;
}

/* Adds ", which waits for b@db-1, which runs (63 % of 412 matched samples; finding 2 of db-1)". */
static void cause_add(struct text *line, const struct host_report *of, const struct host_wait *wait,
		      const struct host_cause *cause, bool first)
{
	const struct host_join *join = &of->found->join;
	int64_t rank = rank_of(of, cause->host, cause->key);

	text_add_string(line, first ? ", which " : "or ");
	host_cause_add(line, wait, cause, join);
	text_add_format(line, " (%lld %%", (long long)ratio(cause->samples, 100, wait->matched));
	if (first)
		text_add_format(line, " of %lld matched samples", (long long)wait->matched);
	if (rank)
		text_add_format(line, "; finding %lld of %s", (long long)rank,
				join->hosts[cause->host].name);
	text_add_char(line, ')');
}

/* Adds "0.8 checkout@shop-1 wait for postgres@db-1". */
static void waiter_add(struct text *line, const struct host_report *of,
		       const struct host_wait *wait, int64_t elapsed_us)
{
	const struct host_join *join = &of->found->join;
	int64_t rank = rank_of(of, wait->waiter_host, wait->key);

	text_add_decimals(line, ratio(wait->weight_us, 10, elapsed_us), 1);
	text_add_format(line, " %s@%s", wait->waiter ? wait->waiter : "?",
			join->hosts[wait->waiter_host].name);
	if (rank)
		text_add_format(line, " (finding %lld of %s)", (long long)rank,
				join->hosts[wait->waiter_host].name);
	text_add_format(line, " wait for %s@%s", wait->server ? wait->server : "?",
			join->hosts[wait->server_host].name);
}

/* Writes the line without what could harm a terminal, and empties it. */
static void line_write(struct text *out, const struct interval *interval, struct text *line)
{
	struct text safe = {0};

	text_add_printable(&safe, text_string(line));
	interval_add_line(out, interval, &safe);
	text_clear(line);
}

/* Adds a sentence for each wait, and a line for each other cause. */
static void waits_add(struct text *out, const struct interval *interval,
		      const struct host_report *of)
{
	int64_t elapsed_us = interval->tally->elapsed_us;
	struct text line = {0};

	text_add_string(out, "\nWho waits for another host, and what was seen there meanwhile:\n");
	for (size_t i = 0; i < of->told; i++) {
		const struct host_wait *wait = wait_at(of, i);
		const struct host_cause *causes = wait->causes.rows;

		text_add_format(&line, "%zu. ", i + 1);
		waiter_add(&line, of, wait, elapsed_us);
		cause_add(&line, of, wait, causes, true);
		line_write(out, interval, &line);
		for (size_t j = 1; j < wait->causes.count && host_cause_counts(wait, &causes[j]);
		     j++) {
			text_add_string(&line, "   ");
			cause_add(&line, of, wait, &causes[j], false);
			line_write(out, interval, &line);
		}
	}
	if (!of->told)
		text_add_string(out, "No program did so for enough samples to tell.\n");
	text_done(&line);
}

static void hosts_below(struct text *out, const struct interval *interval, void *state)
{
	const struct host_report *of = state;

	if (of->found)
		waits_add(out, interval, of);
}

static void hosts_footer(struct text *out, const struct interval *interval, void *state)
{
	const struct host_report *of = state;

	if (of->found)
		grounds_add(out, interval, of->found);
}

/* --- JSON */

static void json_add_cause(struct text *out, const struct host_report *of,
			   const struct host_wait *wait, const struct host_cause *cause, bool first)
{
	const struct host_join *join = &of->found->join;
	int64_t rank = rank_of(of, cause->host, cause->key);
	struct text text = {0};

	host_cause_add(&text, wait, cause, join);
	json_add_text(out, first ? "{\"text\":" : ",{\"text\":", text_string(&text));
	json_add_text(out, ",\"host\":", join->hosts[cause->host].name);
	json_add_number(out, "samples", cause->samples);
	json_add_number(out, "finding_rank", rank ? rank : ABSENT);
	text_add_char(out, '}');
	text_done(&text);
}

static void hosts_objects(struct text *out, const char *end, void *state)
{
	const struct host_report *of = state;

	for (size_t i = 0; of->found && i < of->told; i++) {
		const struct host_join *join = &of->found->join;
		const struct host_wait *wait = wait_at(of, i);
		const struct host_cause *causes = wait->causes.rows;
		int64_t rank = rank_of(of, wait->waiter_host, wait->key);

		json_add_text(out, "{\"finding\":", "other_host");
		json_add_number(out, "rank", (int64_t)i + 1);
		json_add_text(out, ",\"host\":", join->hosts[wait->waiter_host].name);
		json_add_text(out, ",\"waiter\":", wait->waiter ? wait->waiter : "?");
		json_add_text(out, ",\"server_host\":", join->hosts[wait->server_host].name);
		json_add_text(out, ",\"server\":", wait->server ? wait->server : "?");
		json_add_number(out, "finding_rank", rank ? rank : ABSENT);
		json_add_number(out, "time_us", wait->weight_us);
		json_add_number(out, "samples", wait->samples);
		json_add_number(out, "matched", wait->matched);
		text_add_string(out, ",\"causes\":[");
		for (size_t j = 0; j < wait->causes.count && host_cause_counts(wait, &causes[j]);
		     j++)
			json_add_cause(out, of, wait, &causes[j], !j);
		text_add_char(out, ']');
		text_add_string(out, end);
	}
}

const struct report_part hosts_part = {.bytes = sizeof(struct host_report),
				       .begin = hosts_begin,
				       .open = hosts_opened,
				       .end = hosts_end,
				       .below = hosts_below,
				       .footer = hosts_footer,
				       .objects = hosts_objects,
				       .clear = hosts_clear};

/* --- runs */

/* Writes what leads from host to host alone, below the findings of each. */
static void joined_add(struct text *out, const struct interval *interval)
{
	void *state = report_state(interval->report, &hosts_part);

	hosts_below(out, interval, state);
	hosts_footer(out, interval, state);
}

static void joined_json_add(struct text *out, const struct interval *interval)
{
	struct text end = {0};

	grouped_json_end(&end, interval);
	hosts_objects(out, text_string(&end), report_state(interval->report, &hosts_part));
	text_done(&end);
}

static const struct renderer renderer_joined = {
	.name = "hosts",
	.kind = RENDERER_REPORT,
	.grouped = true,
	.has_footer = true,
	.before = REPORT_MEASURES_DEFAULT,
	.columns = REPORT_COLUMNS_DEFAULT,
	.add = joined_add,
};

static const struct renderer renderer_joined_json = {
	.name = "json hosts",
	.kind = RENDERER_ROWS,
	.grouped = true,
	.before = REPORT_MEASURES_DEFAULT,
	.columns = REPORT_COLUMNS_DEFAULT,
	.add = joined_json_add,
};

bool hosts_have_findings(const struct config *config)
{
	return config->report.findings &&
	       (config->mode == MODE_REPORT ||
		(config->format && config->format->of_findings == &renderer_json_findings));
}

/* Reports what leads from host to host, with --chains beside the chains. */
static int joined_run(const struct config *config, void (*tell)(const char *lines), struct error *e)
{
	struct config joined = *config;

	joined.report.raw = true; /* threads of two hosts may have one id */
	if (joined.report.findings && !joined.report.chains) {
		joined.format =
			joined.mode == MODE_REPORT ? &renderer_joined : &renderer_joined_json;
		joined.mode = MODE_FORMAT;
		joined.columns = joined.by = joined.more_columns = NULL;
	}
	joined.report.findings = false;
	joined.against = NULL;
	return run(&joined, hosts_open, tell, e);
}

int hosts_run(const struct config *config, source_opener *open_one, void (*tell)(const char *lines),
	      struct error *e)
{
	struct replayed_hosts *hosts = config->hosts;
	bool met = false, findings = hosts_have_findings(config);
	int err = 0;

	for (hosts->at = 0; findings && !err && hosts->at < hosts->count && !signals_stop();
	     hosts->at++) {
		struct config one;

		hosts_config(config, hosts->at, &one);
		one.report.chains = false;
		if (hosts->at && config->mode == MODE_REPORT)
			err = run_output(NULL, &(struct text){.bytes = "\n", .length = 1}, e);
		if (!err)
			err = run(&one, open_one, tell, e);
		met |= err == 1;
		err = err == 1 ? 0 : err;
	}
	hosts->at = hosts->count;
	/* --when is about the findings of a host */
	if (err || config->report.condition.given)
		return err ? err : met;
	err = joined_run(config, tell, e);
	/* their findings stand without that, too */
	if (err == -ENODATA && findings && !config->report.chains) {
		struct text line = {0};

		text_add_format(&line, "%s\n", e->line);
		tell(text_string(&line));
		text_done(&line);
		error_done(e);
		*e = (struct error){0};
		return 0;
	}
	return err;
}
