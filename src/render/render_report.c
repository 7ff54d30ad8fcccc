/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The report for people: a header line, a table with the most active groups first, and a footer
 * that says what was missed and what tsnap itself cost. */
#include "render/renderer.h"
#include "render/report_rows.h"
#include "report/value.h"

#include <stdlib.h>
#include <string.h>

/* Bound on the difference between exact CPU times and /proc/stat: 2 % of the busy time, or 0.5 % of
 * all time if that is more, two ticks of /proc/stat on each CPU, and what the source adds.
 * Interrupts of idle CPUs belong to no thread: times that are too small are reported only if the
 * CPUs were busy for a quarter of the time. */
#define BUSY_PART 50
#define CPUS_PART 200
#define TICKS_US 20000
#define QUIET_PART 4
#define QUOTAS_SHOWN 5	       /* limit of control groups */
#define LIMIT_PERCENT_LEAST 10 /* least use of an I/O limit that is reported */

void interval_add_wrapped(struct text *out, const struct interval *interval, const char *line)
{
	size_t width = interval->width ? interval->width : SIZE_MAX;

	while (*line) {
		size_t fit = text_fit(line, width), cut = fit;

		while (line[fit] && cut && line[cut] != ' ')
			cut--;
		if (!cut)
			cut = fit ? fit : strlen(line); /* a word wider than the line */
		text_add(out, line, cut);
		text_add_char(out, '\n');
		line += cut + strspn(line + cut, " ");
	}
}

/* Adds total / scans as "2.50". */
static void add_average(struct text *out, int64_t total, int64_t scans)
{
	text_add_decimals(out, ratio(total, 100, scans), 2);
}

/* Adds begin and end: ", 2026-11-20 21:42:53.000 to 21:42:58.000 CET" */
static void add_times(struct text *out, const struct tally *tally)
{
	char from[CLOCK_LOCAL_SIZE], until[CLOCK_LOCAL_SIZE];

	clock_format_local(tally->from_us, from);
	clock_format_local(tally->until_us, until);
	text_add_format(out, ", %.10s %.12s to ", from, from + CLOCK_LOCAL_TIME);
	if (strncmp(from, until, 10))
		text_add_format(out, "%.10s ", until);
	text_add_format(out, "%.12s %s", until + CLOCK_LOCAL_TIME, until + CLOCK_LOCAL_ZONE);
}

void interval_add_origin(struct text *out, const struct interval *interval)
{
	const struct source_status *status = interval->status;

	text_add_string(out, "tsnap");
	if (interval->recording) {
		text_add_string(out, ", replay of ");
		text_add_printable(out, interval->recording);
	}
	if (*status->host) {
		text_add_string(out, " on ");
		text_add_printable(out, status->host);
	}
	if (*status->kernel) {
		text_add_string(out, ", Linux ");
		text_add_printable(out, status->kernel);
	}
	if (status->cpus != ABSENT)
		text_add_format(out, ", %lld CPU%s", (long long)status->cpus,
				status->cpus == 1 ? "" : "s");
	if (interval->tally->scans)
		add_times(out, interval->tally);
}

void interval_add_scans(struct text *out, const struct interval *interval)
{
	const struct tally *tally = interval->tally;

	text_add_format(out, "%lld scan%s in ", (long long)tally->scans,
			tally->scans == 1 ? "" : "s");
	text_add_decimals(out, ratio(tally->elapsed_us, 100, US_PER_SECOND), 2);
	text_add_string(out, " s, ");
	text_add_decimals(out, ratio(tally->scans, 100 * US_PER_SECOND, tally->elapsed_us), 2);
	text_add_string(out, " Hz");
	if (interval->status->rate_hz != ABSENT)
		text_add_format(out, " (-F %lld)", (long long)interval->status->rate_hz);
	if (tally->threads) {
		text_add_string(out, "; threads seen: ");
		add_average(out, tally->threads, tally->scans);
		text_add_format(out, " on average, %lld at most", (long long)tally->threads_max);
	}
	text_add_string(out, "; active: ");
	add_average(out, tally->active, tally->scans);
	text_add_format(out, " on average, %lld at most", (long long)tally->active_max);
}

/* Adds a percentage as "12.3 %". */
static void add_percent(struct text *line, int64_t part, int64_t whole)
{
	text_add_decimals(line, ratio(part, 1000, whole), 1);
	text_add_string(line, " %");
}

/* Adds the share of time in which threads waited for a resource: of all threads, whatever the
 * filter. */
static void add_pressure(struct text *out, const struct interval *interval, const char *of,
			 const struct source_pressure pressures[RESOURCE_COUNT], bool host)
{
	static const char *const names[RESOURCE_COUNT] = {
		[RESOURCE_CPU] = "CPU",
		[RESOURCE_MEMORY] = "memory",
		[RESOURCE_IO] = "I/O",
	};
	struct text line = {0};

	for (int i = 0; i < RESOURCE_COUNT; i++) {
		const struct source_pressure *pressure = &pressures[i];

		if (!pressure->known || !pressure->read_us)
			continue;
		if (line.length)
			text_add_char(&line, ',');
		else
			text_add_format(&line, "Pressure (PSI) of %s:", of);
		text_add_format(&line, " %s some ", names[i]);
		add_percent(&line, pressure->some_us, pressure->read_us);
		if (i == RESOURCE_CPU && host)
			continue; /* cpu full is always 0 for a host */
		text_add_string(&line, " full ");
		add_percent(&line, pressure->full_us, pressure->read_us);
	}
	interval_add_wrapped(out, interval, text_string(&line));
	text_done(&line);
}

static void add_path_words(struct text *out, const struct interval *interval)
{
	struct text line = {0};

	text_add_string(&line, "Critical path of ");
	text_add_printable(&line, interval->path_of);
	text_add_string(&line, ": the time of its threads (by samples), by the thread that each "
			       "wait was for in the end, and what that one did meanwhile");
	interval_add_wrapped(out, interval, text_string(&line));
	text_done(&line);
}

/* Adds that the clock was set: durations are right, times before that are by another clock. */
static void add_clock_steps(struct text *out, const struct interval *interval)
{
	const struct tally *tally = interval->tally;
	struct text line = {0};

	if (!tally->clock_steps)
		return;
	text_add_string(&line, "Note: ");
	clock_step_add(&line, tally->clock_step_us, tally->clock_stepped_us, interval->recording);
	if (tally->clock_steps > 1)
		text_add_format(&line, ", and %lld times before",
				(long long)tally->clock_steps - 1);
	interval_add_wrapped(out, interval, text_string(&line));
	text_done(&line);
}

static void add_header(struct text *out, const struct interval *interval)
{
	struct text line = {0};

	interval_add_origin(&line, interval);
	interval_add_wrapped(out, interval, text_string(&line));
	text_clear(&line);
	interval_add_scans(&line, interval);
	interval_add_wrapped(out, interval, text_string(&line));
	add_clock_steps(out, interval);
	add_pressure(out, interval, "the host", interval->status->pressure, true);
	add_pressure(out, interval, interval->status->pressed_group,
		     interval->status->group_pressure, false);
	if (interval->path_of)
		add_path_words(out, interval);
	text_add_char(out, '\n');
	text_done(&line);
}

void interval_add_absent(struct text *out, const struct interval *interval)
{
	const struct source_status *status = interval->status;
	struct text line = {0};

	for (size_t i = 0; i < status->absent_count; i++) {
		text_add_string(&line, line.length ? "; " : "Absent on this host: ");
		absent_add(&line, interval->grid->list, &status->absent[i]);
	}
	interval_add_wrapped(out, interval, text_string(&line));
	if (interval->unrecorded) {
		text_clear(&line);
		text_add_string(&line, "Not in the recording: ");
		unrecorded_add(&line, interval->unrecorded, NULL);
		interval_add_wrapped(out, interval, text_string(&line));
	}
	text_done(&line);
}

/* Adds a time as "0.31 s". */
static void add_seconds(struct text *line, int64_t us)
{
	text_add_decimals(line, ratio(us, 100, US_PER_SECOND), 2);
	text_add_string(line, " s");
}

/* Adds how much of the exact time is of threads that samples saw in that state, and which times are
 * not exact. */
static void add_coverage(struct text *out, const struct interval *interval)
{
	const struct tally *tally = interval->tally;
	int64_t exact_us = 0, covered_us = 0;
	struct text line = {0};

	for (int kind = 0; kind < TIME_KINDS; kind++) {
		if (!tally->all_us[kind] || !tally->samples)
			continue;
		text_add_string(&line, line.length ? ", " : "Exact times: ");
		text_add_decimals(&line, ratio(tally->covered_us[kind], 1000, tally->all_us[kind]),
				  1);
		text_add_format(&line, " %% of %s", state_row(time_kind_state(kind))->name);
		exact_us = sum(exact_us, tally->all_us[kind]);
		covered_us = sum(covered_us, tally->covered_us[kind]);
	}
	if (exact_us)
		text_add_string(&line, " are of threads that a scan saw in that state");
	if (covered_us < exact_us)
		text_add_string(&line, "; what the others did is not known: rows with -");
	if (exact_us && tally->shared_us > exact_us)
		text_add_string(
			&line,
			tally->all_us[TIME_ASLEEP]
				? ""
				: "; S counts samples (exact where all states are sampled: -a)");
	interval_add_wrapped(out, interval, text_string(&line));
	text_done(&line);
}

/* Adds counts of processes: those that live for less than the time between two scans are in few
 * samples. */
static void add_processes(struct text *out, const struct interval *interval)
{
	const struct tally *tally = interval->tally;
	struct text line = {0};

	if (!tally->forks && !tally->execs && !tally->exits)
		return;
	text_add_format(&line, "Processes: %lld forks, %lld execs, %lld exits",
			(long long)tally->forks, (long long)tally->execs, (long long)tally->exits);
	if (tally->dead_cpu_us) {
		text_add_string(&line, "; threads that ended had used ");
		add_seconds(&line, tally->dead_cpu_us);
		text_add_string(&line, " of CPU time, most of it: ");
		text_add_printable(&line, tally->most_comm ? tally->most_comm : ABSENT_TEXT);
		text_add_string(&line, " (");
		text_add_printable(&line, tally->most_user ? tally->most_user : ABSENT_TEXT);
		text_add_string(&line, ") ");
		add_seconds(&line, tally->most_cpu_us);
	}
	interval_add_wrapped(out, interval, text_string(&line));
	text_done(&line);
}

/* Adds the control groups whose threads did not run because of a quota, as the kernel counts it. */
static void add_quotas(struct text *out, const struct interval *interval)
{
	const struct source_status *status = interval->status;
	size_t shown = status->quota_count < QUOTAS_SHOWN ? status->quota_count : QUOTAS_SHOWN;
	size_t more = status->quota_count - shown + status->quotas_more;
	struct text line = {0};

	for (size_t i = 0; i < shown; i++) {
		const struct source_quota *quota = &status->quotas[i];

		text_add_string(&line, i ? "; " : "Throttled by CPU quotas: ");
		text_add_printable(&line, quota->path);
		text_add_char(&line, ' ');
		add_seconds(&line, quota->throttled_us);
		text_add_format(&line, " on its CPUs, in %lld of %lld periods",
				(long long)quota->throttled_periods, (long long)quota->periods);
	}
	if (shown && more)
		text_add_format(&line, "; and %zu more control groups", more);
	interval_add_wrapped(out, interval, text_string(&line));
	text_done(&line);
}

/* Use of a limit in percent of what the interval allows. More than 100: unused I/O was saved
 * before, which limits permit. */
static int64_t limit_percent(const struct interval *interval, const struct source_io_limit *limit)
{
	int64_t allowed = ratio(limit->limit, interval->tally->elapsed_us, US_PER_SECOND);

	return allowed > 0 ? ratio(limit->used, 100, allowed) : 0;
}

/* Adds the control groups with limits of I/O, and how far they used them: the kernel does not
 * report how long it throttled them. */
static void add_io_limits(struct text *out, const struct interval *interval)
{
	const struct source_status *status = interval->status;
	struct text line = {0};
	size_t shown = 0;

	for (size_t i = 0; i < status->io_limit_count && interval->tally->elapsed_us; i++) {
		const struct source_io_limit *limit = &status->io_limits[i];
		int64_t percent = limit_percent(interval, limit);

		if (percent < LIMIT_PERCENT_LEAST)
			continue;
		text_add_string(&line, shown++ ? "; " : "I/O limits: ");
		text_add_printable(&line, limit->path);
		text_add_format(&line, " used %lld %% of %s=%lld on ", (long long)percent,
				limit->word, (long long)limit->limit);
		text_add_printable(&line, limit->device);
	}
	interval_add_wrapped(out, interval, text_string(&line));
	text_done(&line);
}

void interval_add_missed(struct text *out, const struct interval *interval)
{
	const struct source_status *status = interval->status;
	struct text line = {0};

	for (size_t i = 0; i < status->missed_count; i++) {
		if (!status->missed[i].count)
			continue;
		text_add_string(&line, line.length ? "; " : "Missed: ");
		missed_add(&line, &status->missed[i]);
	}
	interval_add_wrapped(out, interval, text_string(&line));
	text_done(&line);
}

/* Returns how far the exact CPU times may differ from the busy time of the CPUs. */
static int64_t check_bound_us(const struct interval *interval)
{
	const struct source_status *status = interval->status;

	int64_t busy_us = status->busy_us / BUSY_PART,
		all_us = interval->tally->elapsed_us / CPUS_PART * status->cpus;

	return (busy_us > all_us ? busy_us : all_us) + TICKS_US * status->cpus +
	       status->busy_error_us;
}

static void add_check(struct text *out, const struct interval *interval)
{
	const struct source_status *status = interval->status;
	struct text line = {0};
	int64_t reported_us;

	if (!interval->tally->cpu_us || status->busy_us == ABSENT || status->own_cpu_ns == ABSENT)
		return;
	reported_us = sum(interval->tally->cpu_us, status->own_cpu_ns / NS_PER_US);
	if (llabs(reported_us - status->busy_us) <= check_bound_us(interval) ||
	    (reported_us < status->busy_us &&
	     status->busy_us < interval->tally->elapsed_us / QUIET_PART * status->cpus))
		return;
	text_add_string(&line, "Exact times may be wrong: all rows and tsnap itself have ");
	add_seconds(&line, reported_us);
	text_add_string(&line, " of CPU time, and the CPUs were busy for ");
	add_seconds(&line, status->busy_us);
	text_add_string(&line, " (/proc/stat)");
	interval_add_wrapped(out, interval, text_string(&line));
	text_done(&line);
}

/* Adds a share as ", 1.23 % of one CPU". */
static void add_cpu_share(struct text *line, int64_t ns, const struct tally *tally)
{
	int64_t elapsed_ns = ratio(tally->elapsed_us, NS_PER_US, 1);

	if (!elapsed_ns)
		return;
	text_add_string(line, ", ");
	text_add_decimals(line, ratio(ns, 10000, elapsed_ns), 2);
	text_add_string(line, " % of one CPU");
}

static void add_cost(struct text *out, const struct interval *interval)
{
	const struct source_status *status = interval->status;
	struct text line = {0};

	if (status->own_cpu_ns != ABSENT) {
		text_add_string(&line, "tsnap itself: ");
		text_add_decimals(&line, ratio(status->own_cpu_ns, 1, 100000), 1);
		text_add_string(&line, " ms of CPU time");
		add_cpu_share(&line, status->own_cpu_ns, interval->tally);
	}
	if (status->bpf_ns != ABSENT && status->bpf_runs != ABSENT) {
		text_add_string(&line, line.length ? "; its BPF programs: " : "BPF programs: ");
		text_add_decimals(&line, ratio(status->bpf_ns, 1, 100000), 1);
		text_add_format(&line, " ms in %lld runs", (long long)status->bpf_runs);
		add_cpu_share(&line, status->bpf_ns, interval->tally);
		text_add_format(&line, ", %lld ns a run",
				(long long)ratio(status->bpf_ns, 1, status->bpf_runs));
	}
	interval_add_wrapped(out, interval, text_string(&line));
	text_done(&line);
}

static void footer_add(struct text *out, const struct interval *interval)
{
	size_t footer;

	if (interval->distributions)
		interval_add_distributions(out, interval);
	if (interval->events)
		interval_add_events(out, interval);
	if (interval->sleep_sums)
		interval_add_sleep_sums(out, interval);
	if (interval->chains)
		interval_add_chains(out, interval);
	footer = out->length;
	text_add_char(out, '\n');
	add_coverage(out, interval);
	interval_add_stacks_footer(out, interval);
	add_processes(out, interval);
	add_quotas(out, interval);
	add_io_limits(out, interval);
	interval_add_absent(out, interval);
	add_check(out, interval);
	if (interval->status->self.requested) {
		interval_add_self(out, interval);
	} else {
		interval_add_missed(out, interval);
		add_cost(out, interval);
	}
	/* an empty line precedes the footer, or else ends the report */
	if (out->length > footer + 1)
		text_add_char(out, '\n');
}

static size_t lines_count(const struct text *text, size_t from)
{
	size_t lines = 0;

	for (; from < text->length; from++)
		lines += text->bytes[from] == '\n';
	return lines;
}

/* Adds a line if the process of --critical-path was not there. */
static void add_nobody(struct text *out, const struct interval *interval)
{
	struct text line = {0};

	text_add_string(&line, "No samples: no thread of ");
	text_add_printable(&line, interval->path_of);
	text_add_string(&line, " was seen.");
	interval_add_wrapped(out, interval, text_string(&line));
	text_done(&line);
}

static void report_add(struct text *out, const struct interval *interval)
{
	size_t start = out->length, rows;
	struct text footer = {0};

	footer_add(&footer, interval);
	if (interval->findings) {
		interval_add_findings_header(out, interval);
		interval_add_findings(out, interval);
		text_add(out, text_string(&footer), footer.length);
		text_done(&footer);
		return;
	}
	add_header(out, interval);
	rows = report_rows(interval, lines_count(out, start) + lines_count(&footer, 0));
	if (rows && interval->heatmap)
		interval_add_heatmap(out, interval);
	else if (rows)
		interval_add_table(out, interval, rows);
	else if (interval->path_of)
		add_nobody(out, interval);
	else
		interval_add_sleepers(out, interval);
	if (rows < interval->grid->row_count && !interval->heatmap)
		interval_add_rest(out, interval, rows);
	text_add(out, text_string(&footer), footer.length);
	text_done(&footer);
}

const struct renderer renderer_report = {
	.name = "report",
	.kind = RENDERER_REPORT,
	.grouped = true,
	.accounts = true,
	.has_footer = true,
	.before = REPORT_MEASURES_DEFAULT,
	.columns = REPORT_COLUMNS_DEFAULT,
	.add = report_add,
};
