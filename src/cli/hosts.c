/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/hosts.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/signals.h"
#include "cli/part_table.h"
#include "recording/recording.h"
#include "render/renderer.h"
#include "report/host_join.h"
#include "report/value.h"
#include "sample/needs_table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMED_US (600 * US_PER_SECOND) /* time that is read to find how the clocks differ */
#define HELD_PERIODS 4		       /* scans before and after are held for so long */

/* what a chain is joined by */
#define NEEDS_JOIN (NEED_COMM | NEED_CONNECTION | NEED_SERVES | NEED_CHAIN | NEED_WAIT_CLASS)

/* A recording of one host. */
struct host_reader {
	struct source *source;
	struct scan scan; /* the next one, by the clock as it was at the first one */
	bool ahead;	  /* it was read */
	bool ended;
	int64_t stepped_us; /* how far the clock was set forward since then */
	int64_t last_us;    /* time of the last scan that was read */
};

struct hosts {
	struct source source; /* first member, so that a source is a hosts */
	const struct config *config;
	const struct filter *filter; /* of samples whose chains are joined */
	struct filter all;	     /* of the recordings: others are at the end of chains */
	const char *names[JOIN_HOSTS_MAX];
	struct host_reader readers[JOIN_HOSTS_MAX];
	size_t count;
	struct host_join join;
	int64_t period_us, at_us; /* length of a scan of all; end of the last one */
	int64_t silent_us;
	struct sample *samples;
	size_t capacity;
	uint64_t lacking; /* hosts whose recordings lack the columns to join by, a bit each */
};

int hosts_count(const struct config *config, size_t *count, struct error *e)
{
	const char *hosts[JOIN_HOSTS_MAX], **paths = config_replay_paths(config);
	int err = recording_hosts(paths, &config->part, hosts, JOIN_HOSTS_MAX, count, e);

	free(paths);
	return err;
}

/* --- readers */

static int readers_open(struct hosts *hosts, uint64_t needs, struct error *e)
{
	const char **paths = config_replay_paths(hosts->config);
	int err = 0;

	for (size_t i = 0; !err && i < hosts->count; i++) {
		struct recording_part part = hosts->config->part;

		hosts->readers[i] = (struct host_reader){0};
		part.host = hosts->names[i];
		err = recording_open(paths, &part, &hosts->all, needs, &hosts->readers[i].source,
				     e);
	}
	free(paths);
	return err;
}

static void readers_close(struct hosts *hosts)
{
	for (size_t i = 0; i < hosts->count; i++) {
		if (hosts->readers[i].source)
			hosts->readers[i].source->close(hosts->readers[i].source);
		hosts->readers[i].source = NULL;
	}
}

/* Reads the next scan, unless it was read. 0, or -errno as next() of a source. */
static int reader_peek(struct host_reader *reader, struct error *e)
{
	int more;

	if (reader->ahead || reader->ended)
		return 0;
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): readers are open until the end */
	more = reader->source->next(reader->source, &reader->scan, e);
	reader->ahead = more > 0;
	reader->ended = !more;
	if (more <= 0)
		return more;
	reader->stepped_us += reader->scan.clock_step_us;
	reader->scan.time_us -= reader->stepped_us;
	reader->last_us = reader->scan.time_us;
	return 0;
}

/* --- clocks */

/* The reader with the earliest scan, by the recorded clocks; NULL: all have ended. */
static int reader_first(struct hosts *hosts, struct host_reader **first, struct error *e)
{
	*first = NULL;
	for (size_t i = 0; i < hosts->count; i++) {
		struct host_reader *reader = &hosts->readers[i];
		int err;

		do
			err = reader_peek(reader, e);
		while (err == -EINTR && !signals_stop());
		if (err)
			return err;
		if (reader->ended)
			continue;
		if (!*first || reader->scan.time_us < (*first)->scan.time_us)
			*first = reader;
	}
	return 0;
}

/* Finds recordings without a common time, once their clocks are known. 0, or -ENODATA with e. */
static int common_check(const struct hosts *hosts, const int64_t *begins_us, struct error *e)
{
	char end[CLOCK_ISO_SIZE], begin[CLOCK_ISO_SIZE];
	const struct host_clock *clocks = hosts->join.clocks;
	size_t early = 0, late = 0;

	for (size_t i = 0; i < hosts->count; i++) {
		if (hosts->readers[i].last_us - clocks[i].ahead_us <
		    hosts->readers[early].last_us - clocks[early].ahead_us)
			early = i;
		if (begins_us[i] - clocks[i].ahead_us > begins_us[late] - clocks[late].ahead_us)
			late = i;
	}
	/* of one that has not ended enough was read */
	if (hosts->readers[early].last_us - clocks[early].ahead_us >=
	    begins_us[late] - clocks[late].ahead_us)
		return 0;
	clock_format_iso(hosts->readers[early].last_us, end);
	clock_format_iso(begins_us[late], begin);
	return error_set(e, ENODATA, EXIT_FAILED,
			 "the recordings have no time in common: that of %s ends at %s, that of %s "
			 "begins at %s",
			 hosts->names[early], end, hosts->names[late], begin);
}

/* Notes which recordings lack a column to join by. */
static void lacking_note(struct hosts *hosts)
{
	static const char *const names[] = {"connection", "serves", "why", "chain"};

	for (size_t i = 0; i < hosts->count; i++)
		for (size_t j = 0; j < sizeof(names) / sizeof(*names); j++) {
			struct source *source = hosts->readers[i].source;

			if (source->lacks && source->lacks(source, sample_column_find(names[j])))
				hosts->lacking |= UINT64_C(1) << i;
		}
}

/* Reads the recordings for a while to find how their clocks differ. 0 or -errno with e. */
static int clocks_read(struct hosts *hosts, struct error *e)
{
	int64_t begins_us[JOIN_HOSTS_MAX] = {0}, begin_us = 0;
	struct host_reader *reader;
	int err = reader_first(hosts, &reader, e);

	for (size_t i = 0; !err && i < hosts->count; i++) {
		begins_us[i] = hosts->readers[i].last_us;
		if (begin_us < begins_us[i])
			begin_us = begins_us[i];
	}
	while (!err && reader && reader->scan.time_us < begin_us + TIMED_US && !signals_stop()) {
		host_join_time(&hosts->join, (size_t)(reader - hosts->readers),
			       reader->scan.time_us, reader->scan.samples, reader->scan.count);
		reader->ahead = false;
		err = reader_first(hosts, &reader, e);
	}
	if (err)
		return err;
	lacking_note(hosts);
	host_join_find_clocks(&hosts->join);
	return common_check(hosts, begins_us, e);
}

/* --- the source */

static int64_t time_there(const struct hosts *hosts, size_t host)
{
	return hosts->readers[host].scan.time_us - hosts->join.clocks[host].ahead_us;
}

/* Reads on until all scans before that time are held. 0, or -errno as next() of a source. */
static int scans_hold(struct hosts *hosts, int64_t until_us, struct error *e)
{
	for (size_t i = 0; i < hosts->count; i++) {
		struct host_reader *reader = &hosts->readers[i];

		for (;;) {
			int err = reader_peek(reader, e);

			if (err)
				return err;
			if (!reader->ahead || time_there(hosts, i) >= until_us)
				break;
			host_join_add(&hosts->join, i, time_there(hosts, i), &reader->scan);
			reader->ahead = false;
		}
	}
	return 0;
}

static bool all_have(const struct hosts *hosts, int64_t time_us)
{
	for (size_t i = 0; i < hosts->count; i++)
		if (hosts->readers[i].ended &&
		    hosts->readers[i].last_us - hosts->join.clocks[i].ahead_us < time_us)
			return false;
	return true;
}

/* Takes a host's samples of a time. Returns the number of samples so far. */
static size_t samples_take(struct hosts *hosts, size_t host, int64_t end_us, size_t count)
{
	const struct joined_host *of = &hosts->join.hosts[host];

	for (size_t i = 0; i < of->count; i++) {
		const struct host_scan *scan = &of->scans[i];

		if (scan->time_us <= hosts->at_us || scan->time_us > end_us)
			continue;
		for (size_t j = 0; j < scan->count; j++) {
			struct sample sample = scan->samples[j];

			host_join_fill(&hosts->join, host, scan, &sample);
			if (!filter_accepts(hosts->filter, &sample))
				continue;
			host_join_name(&hosts->join, host, &sample);
			sample.scan.time_us = scan->time_us;
			hosts->samples = memory_grow(hosts->samples, &hosts->capacity, count + 1,
						     sizeof(*hosts->samples));
			hosts->samples[count++] = sample;
		}
	}
	return count;
}

static int hosts_next(struct source *source, struct scan *scan, struct error *e)
{
	struct hosts *hosts = (struct hosts *)source;

	for (;;) {
		int64_t end_us = hosts->at_us + hosts->period_us,
			held_us = HELD_PERIODS * hosts->period_us;
		int err = scans_hold(hosts, end_us + held_us, e);
		size_t count = 0;

		if (err)
			return err;
		if (signals_stop())
			return -EINTR;
		if (!all_have(hosts, end_us))
			return 0;
		for (size_t i = 0; i < hosts->count; i++)
			count = samples_take(hosts, i, end_us, count);
		host_join_forget(&hosts->join, end_us - held_us);
		hosts->at_us = end_us;
		if (!count) {
			hosts->silent_us += hosts->period_us;
			continue;
		}
		*scan = (struct scan){.time_us = end_us,
				      .weight_us = hosts->period_us,
				      .silent_us = hosts->silent_us,
				      .samples = hosts->samples,
				      .count = count};
		hosts->silent_us = 0;
		return 1;
	}
}

static void hosts_describe(struct source *source, struct source_status *status)
{
	struct hosts *hosts = (struct hosts *)source;
	struct source_status *one = memory_get(sizeof(*one));
	struct text names = {0};

	for (size_t i = 0; i < hosts->count; i++) {
		hosts->readers[i].source->describe(hosts->readers[i].source, i ? one : status);
		text_add_format(&names, "%s%s", i ? ", " : "", hosts->names[i]);
		for (size_t j = 0; i && j < one->missed_count; j++)
			source_status_add(status, &one->missed[j]);
		if (i && status->cpus != ABSENT)
			status->cpus = sum(status->cpus, one->cpus);
	}
	snprintf(status->host, sizeof(status->host), "%s", text_string(&names));
	text_done(&names);
	free(one);
}

static bool hosts_lack(const struct source *source, const struct column *column)
{
	const struct hosts *hosts = (const struct hosts *)source;
	bool lack = true;

	for (size_t i = 0; i < hosts->count; i++) {
		const struct source *of = hosts->readers[i].source;

		lack &= of->lacks && of->lacks(of, column);
	}
	return lack;
}

static void hosts_close(struct source *source)
{
	struct hosts *hosts = (struct hosts *)source;

	readers_close(hosts);
	host_join_done(&hosts->join);
	free(hosts->samples);
	free(hosts);
}

/* Finds where the scans of all begin, and how long one is. */
static int scans_begin(struct hosts *hosts, struct error *e)
{
	struct source_status *status = memory_get(sizeof(*status));
	int err = 0;

	hosts->at_us = INT64_MIN;
	for (size_t i = 0; !err && i < hosts->count; i++) {
		struct host_reader *reader = &hosts->readers[i];
		int64_t period_us;

		err = reader_peek(reader, e);
		reader->source->describe(reader->source, status);
		period_us = status->rate_hz > 0 ? US_PER_SECOND / status->rate_hz
						: reader->scan.weight_us;
		if (hosts->period_us < period_us)
			hosts->period_us = period_us;
		if (reader->ahead && hosts->at_us < time_there(hosts, i) - period_us)
			hosts->at_us = time_there(hosts, i) - period_us;
	}
	free(status);
	return err;
}

int hosts_open(const struct config *config, struct filter *filter, uint64_t needs,
	       struct source **source, struct error *e)
{
	struct hosts *hosts = memory_get(sizeof(*hosts));
	const char **paths = config_replay_paths(config);
	int err;

	hosts->source = (struct source){.next = hosts_next,
					.describe = hosts_describe,
					.lacks = hosts_lack,
					.close = hosts_close};
	hosts->config = config;
	hosts->filter = filter;
	hosts->all.all_states = true;
	err = recording_hosts(paths, &config->part, hosts->names, JOIN_HOSTS_MAX, &hosts->count, e);
	for (size_t i = 0; i < hosts->count; i++)
		host_join_add_host(&hosts->join, hosts->names[i]);
	if (!err)
		err = readers_open(hosts, sample_needs_close(NEEDS_JOIN), e);
	if (!err)
		err = clocks_read(hosts, e);
	readers_close(hosts);
	if (!err)
		err = readers_open(
			hosts, sample_needs_close(needs | filter_needs(filter) | NEEDS_JOIN), e);
	if (!err)
		err = scans_begin(hosts, e);
	free(paths);
	if (err)
		hosts_close(&hosts->source);
	else
		*source = &hosts->source;
	return err;
}

/* --- what a report says of it */

struct hosts_words {
	const struct hosts *hosts; /* NULL: the source is another one */
};

static int hosts_begin(void *state, struct report *report)
{
	(void)state;
	return report->options->replay && report->for_people && report->config->chains;
}

static int hosts_opened(void *state, struct report *report)
{
	struct hosts_words *words = state;

	if (report->source->next == hosts_next)
		words->hosts = (const struct hosts *)report->source;
	return 0;
}

static void ms_add(struct text *line, int64_t us)
{
	text_add_decimals(line, us, 3);
	text_add_string(line, " ms");
}

static void clock_add(struct text *line, const struct hosts *hosts, size_t host)
{
	const struct host_clock *clock = &hosts->join.clocks[host];
	int64_t us = clock->offset.us;

	if (!clock->known) {
		text_add_format(line,
				"Clocks: how that of %s differs is not known, as too few waits "
				"were seen at both ends, or several differences would do: it is "
				"taken as it is.",
				hosts->names[host]);
		return;
	}
	text_add_format(line, "Clocks: that of %s is ", hosts->names[host]);
	ms_add(line, us < 0 ? -us : us);
	text_add_format(line, " %s that of %s (", us < 0 ? "behind" : "ahead of",
			hosts->names[clock->by]);
	ms_add(line, clock->offset.low_us);
	text_add_string(line, " to ");
	ms_add(line, clock->offset.high_us);
	text_add_format(line, ", by %zu waits that both ends saw).", clock->offset.pairs);
}

static void ends_add(struct text *line, const struct hosts *hosts)
{
	const int64_t *ends = hosts->join.ends;
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

static void hosts_footer(struct text *out, const struct interval *interval, void *state)
{
	const struct hosts *hosts = ((struct hosts_words *)state)->hosts;
	struct text line = {0};

	if (!hosts)
		return;
	ends_add(&line, hosts);
	interval_add_line(out, interval, &line);
	for (size_t i = 1; i < hosts->count; i++) {
		text_clear(&line);
		clock_add(&line, hosts, i);
		interval_add_line(out, interval, &line);
	}
	for (size_t i = 0; i < hosts->count; i++) {
		text_clear(&line);
		if (hosts->lacking >> i & 1)
			text_add_format(&line,
					"The recording of %s lacks columns that chains are joined "
					"by (record with -G chains,why,connection,serves).",
					hosts->names[i]);
		if (line.length)
			interval_add_line(out, interval, &line);
	}
	text_done(&line);
}

const struct report_part hosts_part = {.bytes = sizeof(struct hosts_words),
				       .begin = hosts_begin,
				       .open = hosts_opened,
				       .footer = hosts_footer};
