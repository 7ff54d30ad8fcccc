/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/hosts.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/signals.h"
#include "recording/recording.h"
#include "report/column_list.h"
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
	struct host_reader readers[JOIN_HOSTS_MAX];
	size_t count;
	struct joined_hosts found;
	int64_t period_us, at_us; /* length of a scan of all; end of the last one */
	int64_t silent_us;
	struct sample *samples;
	size_t capacity;
};

int hosts_find(const struct config *config, struct replayed_hosts *hosts, struct error *e)
{
	const char **paths = config_replay_paths(config);
	int err = config->report.chains ? recording_twice_check(paths, e) : 0;

	if (!err)
		err = recording_hosts(paths, &config->part, hosts->hosts, JOIN_HOSTS_MAX,
				      &hosts->count, e);
	hosts->at = hosts->count;
	free(paths);
	return err;
}

void hosts_done(struct replayed_hosts *hosts)
{
	for (size_t i = 0; i < hosts->count; i++)
		index_clear(&hosts->ranks[i]);
}

void hosts_config(const struct config *config, size_t host, struct config *one)
{
	*one = *config;
	one->part.host = config->hosts->hosts[host].name;
	if (one->against_is_time)
		one->against_part.host = one->part.host;
	if (!config->hosts->hosts[host].path)
		return;
	one->replay = config->hosts->hosts[host].path;
	one->replay_more = NULL;
}

/* --- readers */

static int readers_open(struct hosts *hosts, uint64_t needs, struct error *e)
{
	int err = 0;

	for (size_t i = 0; !err && i < hosts->count; i++) {
		const char **paths;
		struct config one;

		hosts_config(hosts->config, i, &one);
		paths = config_replay_paths(&one);
		hosts->readers[i] = (struct host_reader){0};
		err = recording_open(paths, &one.part, &hosts->all, needs,
				     &hosts->readers[i].source, e);
		free(paths);
	}
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
	const struct host_clock *clocks = hosts->found.join.clocks;
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
			 hosts->found.join.hosts[early].name, end,
			 hosts->found.join.hosts[late].name, begin);
}

/* Notes which recordings lack a column to join by. */
static void lacking_note(struct hosts *hosts)
{
	static const char *const names[] = {"connection", "serves", "why", "chain"};

	for (size_t i = 0; i < hosts->count; i++)
		for (size_t j = 0; j < sizeof(names) / sizeof(*names); j++) {
			struct source *source = hosts->readers[i].source;

			if (source->lacks && source->lacks(source, sample_column_find(names[j])))
				hosts->found.lacking |= UINT64_C(1) << i;
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
		host_join_time(&hosts->found.join, (size_t)(reader - hosts->readers),
			       reader->scan.time_us, reader->scan.samples, reader->scan.count);
		reader->ahead = false;
		err = reader_first(hosts, &reader, e);
	}
	if (err)
		return err;
	lacking_note(hosts);
	host_join_find_clocks(&hosts->found.join);
	return common_check(hosts, begins_us, e);
}

/* --- the source */

static int64_t time_there(const struct hosts *hosts, size_t host)
{
	return hosts->readers[host].scan.time_us - hosts->found.join.clocks[host].ahead_us;
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
			host_join_add(&hosts->found.join, i, time_there(hosts, i), &reader->scan);
			reader->ahead = false;
		}
	}
	return 0;
}

static bool all_have(const struct hosts *hosts, int64_t time_us)
{
	for (size_t i = 0; i < hosts->count; i++)
		if (hosts->readers[i].ended &&
		    hosts->readers[i].last_us - hosts->found.join.clocks[i].ahead_us < time_us)
			return false;
	return true;
}

/* Takes a host's samples of a time. Returns the number of samples so far. */
static size_t samples_take(struct hosts *hosts, size_t host, int64_t end_us, size_t count)
{
	const struct joined_host *of = &hosts->found.join.hosts[host];

	for (size_t i = 0; i < of->count; i++) {
		const struct host_scan *scan = &of->scans[i];

		if (scan->time_us <= hosts->at_us || scan->time_us > end_us)
			continue;
		for (size_t j = 0; j < scan->count; j++) {
			struct sample sample = scan->samples[j];
			struct join_path path;

			host_join_fill(&hosts->found.join, host, scan, &sample, &path);
			if (!filter_accepts(hosts->filter, &sample))
				continue;
			host_waits_add(&hosts->found.waits, &hosts->found.join, host,
				       &scan->samples[j], &path);
			host_join_name(&hosts->found.join, host, &sample);
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
		host_join_forget(&hosts->found.join, end_us - held_us);
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
		text_add_format(&names, "%s%s", i ? ", " : "", hosts->found.join.hosts[i].name);
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
	host_join_done(&hosts->found.join);
	host_waits_clear(&hosts->found.waits);
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
	struct column_list findings = {0}; /* causes are compared with those */
	int err = column_list_add(&findings, "findings", true, e);

	hosts->source = (struct source){.next = hosts_next,
					.describe = hosts_describe,
					.lacks = hosts_lack,
					.close = hosts_close};
	hosts->config = config;
	hosts->filter = filter;
	hosts->all.all_states = true;
	hosts->count = config->hosts->count;
	for (size_t i = 0; i < hosts->count; i++)
		host_join_add_host(&hosts->found.join, config->hosts->hosts[i].name);
	if (!err)
		err = readers_open(hosts, sample_needs_close(NEEDS_JOIN), e);
	if (!err)
		err = clocks_read(hosts, e);
	readers_close(hosts);
	if (!err)
		err = readers_open(hosts,
				   sample_needs_close(needs | filter_needs(filter) | NEEDS_JOIN |
						      column_list_needs(&findings)),
				   e);
	if (!err)
		err = scans_begin(hosts, e);
	if (err)
		hosts_close(&hosts->source);
	else
		*source = &hosts->source;
	return err;
}

struct joined_hosts *hosts_joined(struct source *source)
{
	return source->next == hosts_next ? &((struct hosts *)source)->found : NULL;
}
