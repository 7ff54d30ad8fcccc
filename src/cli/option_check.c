/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Checks which options go together, and derives others from those that are given. */
#include "cli/config.h"
#include "cli/died.h"
#include "cli/option_table.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/quantity.h"
#include "kernel/share.h"
#include "kernel/type_source.h"
#include "recording/recorder.h"
#include "render/renderer.h"
#include "screen/saved.h"
#include "sample/sample.h"
#include "sample/wait_rule.h"
#include "live/trace_table.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define PID_DIGITS_MAX 9
#define AROUND_MOST_US (3600 * US_PER_SECOND)

static int usage(struct error *e, const char *what, const char *why)
{
	return error_set(e, EINVAL, EXIT_USAGE, "%s %s", what, why);
}

/* True if samples, or output made of them, are written in a format of that kind. */
static bool writes(const struct config *config, enum renderer_kind kind)
{
	return config->mode == MODE_FORMAT && config->format->kind == kind;
}

/* True if it is a report for people: as text, or as a page. */
static bool reports(const struct config *config)
{
	return config->mode == MODE_REPORT || writes(config, RENDERER_REPORT);
}

static int source_unknown(const char *types, struct error *e)
{
	struct text names = {0};
	int err;

	type_source_names_add(&names, ", ", " or ");
	err = error_set(e, EINVAL, EXIT_USAGE, "--kernel-types %s: SOURCE must be %s", types,
			text_string(&names));
	text_done(&names);
	return err;
}

static int kernel_types_check(const struct config *config, struct error *e)
{
	const char *types =
		config->live.kernel_types ? config->live.kernel_types : TYPE_SOURCE_AUTO;
	bool automatic = !strcmp(types, TYPE_SOURCE_AUTO);

	if (!automatic && !type_source_of(types))
		return source_unknown(types, e);
	if (config->live.btf_file && config->live.offsets_file)
		return usage(e, "--btf", "can't go with --offsets: give one of them");
	if (config->live.btf_file && !automatic && strcmp(types, "btf"))
		return usage(e, "--btf", "can't go with --kernel-types of another source");
	if (config->live.offsets_file && !automatic && strcmp(types, "offsets"))
		return usage(e, "--offsets", "can't go with --kernel-types of another source");
	if (!config->live.offsets_file && !strcmp(types, "offsets"))
		return usage(e, "--kernel-types offsets", "needs --offsets FILE");
	return 0;
}

/* True if events are measured beside samples. */
static bool traced(const struct config *config)
{
	return config->trace || own_probes_report(config->live.own);
}

/* Returns the option by which they are. */
static const char *traced_by(const struct config *config)
{
	return own_probes_report(config->live.own) ? "--probe"
	       : config->live.slower_us		   ? "--slower"
						   : "--trace";
}

/* Returns the given option that only BPF programs can serve; NULL: there is none. */
static const char *bpf_option(const struct config *config)
{
	static const char *const formats[] = {"--flame", "--folded", "--pprof"};
	const char *format;

	if (traced(config))
		return traced_by(config);
	if (config->live.own && !config->replay)
		return "--context with probes";
	if (config->report.critical_path)
		return "--critical-path";
	if (config->live.share || config->live.attach)
		return config->live.share ? "--share" : "--attach";
	if (config->live.kernel_types)
		return "--kernel-types";
	if (config->live.btf_file || config->live.offsets_file)
		return config->live.btf_file ? "--btf" : "--offsets";
	if (config->report.stacks || config->live.python)
		return config->report.stacks ? "--stacks" : "--python";
	if (config->live.frame_pointers || config->live.stack_bytes)
		return config->live.stack_bytes ? "--stack-bytes" : "--fp";
	if (config->by_chain || !writes(config, RENDERER_STACKS))
		return NULL;
	format = option_of_mode(config)->name;
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
		if (!strcmp(formats[i] + strlen("--"), format))
			return formats[i];
	return NULL;
}

static int source_check(struct config *config, struct error *e)
{
	const char *source = config->live.source;

	config->live.needs_bpf = bpf_option(config);
	if (!source)
		return 0;
	if (strcmp(source, SOURCE_BPF) != 0 && strcmp(source, SOURCE_PROC) != 0)
		return error_set(e, EINVAL, EXIT_USAGE,
				 "--source %s: it must be " SOURCE_BPF " or " SOURCE_PROC, source);
	if (config->replay || config->diff)
		return usage(e, "--source", "is for the live host: a recording is a source itself");
	if (config->live.needs_bpf && !strcmp(source, SOURCE_PROC))
		return usage(e, config->live.needs_bpf,
			     "needs BPF programs, which --source proc does without");
	return 0;
}

static bool probes_chosen(const struct config *config)
{
	return config->live.kernel_types || config->live.btf_file || config->live.offsets_file ||
	       config->live.without || config->live.max_threads || config->live.no_cache ||
	       config->live.programs_file || config->live.write_programs;
}

static int programs_check(const struct config *config, bool samples, struct error *e)
{
	const char *option = config->live.programs_file	   ? "--programs"
			     : config->live.write_programs ? "--write-programs"
							   : NULL;

	if (!option)
		return 0;
	if (!samples)
		return usage(e, option, "is for a report, rows, stacks, -o and --top");
	if (config->live.programs_file && config->live.write_programs)
		return usage(e, "--programs", "can't go with --write-programs: copy the file");
	if (config->live.programs_file &&
	    (config->live.kernel_types || config->live.btf_file || config->live.offsets_file))
		return usage(e, "--programs",
			     "has the layout of kernel types in its file: it can't go with "
			     "--kernel-types, --btf or --offsets");
	return 0;
}

static int share_check(const struct config *config, bool samples, struct error *e)
{
	const char *name = config->live.share ? config->live.share : config->live.attach;
	const char *option = config->live.share ? "--share" : "--attach";

	if (!name)
		return 0;
	if (config->live.share && config->live.attach)
		return usage(e, "--share", "can't go with --attach: give one of them");
	if (!share_name_valid(name))
		return error_set(e, EINVAL, EXIT_USAGE,
				 "%s %s: NAME must be 1 to %d letters, digits, - and _", option,
				 name, SHARE_NAME_MAX);
	if (!samples)
		return usage(e, option, "is for a report, rows and stacks");
	if (config->replay || config->diff)
		return usage(e, option, "can't go with --replay or --diff");
	if (config->live.attach && probes_chosen(config))
		return usage(e, "--attach",
			     "can't go with options for the probes: they are those of --share");
	return 0;
}

/* Adds what a recorder traces unasked. */
static int recorded_traces(struct config *config)
{
	if (config->live.attach)
		return 0;
	config->live.traces_unasked = trace_kinds_recorded() & ~config->live.traces;
	config->live.traces |= config->live.traces_unasked;
	config->live.events |= config->live.traces_unasked != 0;
	return 0;
}

#define PROBE_BUDGET_DEFAULT 50 /* tenths of a percent of a CPU */

/* Checks contexts between two probes. */
static int contexts_check(const struct config *config, bool samples, struct error *e)
{
	static const char option[] = "--context with probes";

	if (!samples)
		return usage(e, option, "is for a report, rows, stacks, -o and --top");
	if (config->live.attach)
		return usage(e, option,
			     "needs probes of its own: it can't go with --attach, which uses those "
			     "of --share as they are");
	return config->live.share ? usage(e, option, "can't be shared: leave out --share") : 0;
}

/* Checks --probe where stacks are written: they are those of the probe, with its numbers. */
static int probe_stacks_check(struct config *config, struct error *e)
{
	const struct own_probes *own = config->live.own;
	unsigned int reported = 0;

	if (config->trace || config->live.slower_us || config->live.own_events || config->replay)
		return usage(e, "--probe",
			     "with stacks is of the live host, and can't go with --trace, --slower "
			     "or --events");
	for (unsigned int i = 0; i < own->count; i++) {
		const struct own_probe *probe = &own->items[i].probe;
		const bool time = probe->result == OWN_TIME ||
				  (probe->result == OWN_VALUE && probe->type == OWN_NS);

		if (probe->result == OWN_HELD)
			continue;
		if (++reported > 1)
			return usage(e, "--probe", "with stacks is of one probe at a time");
		if (!time && strcmp(option_of_mode(config)->name, "folded") != 0)
			return usage(e, "--probe",
				     "has times in a flame graph only of a function without "
				     "brackets, or of a value that is ns: --folded has counts, for "
				     "flamegraph.pl");
	}
	config->report.raw = true; /* weights are exact as they are */
	return 0;
}

static int trace_check(struct config *config, bool samples, struct error *e)
{
	const char *typed = traced_by(config);
	bool rows = config->mode != MODE_REPORT;
	uint32_t singles, own = 0;
	bool distributed;
	int err;

	if (config->live.probe_budget && !config->live.own)
		return usage(e, "--probe-budget", "is for --probe and --context");
	if (config->live.own_events && !own_probes_report(config->live.own))
		return usage(e, "--events", "is for --probe");
	if (!config->live.probe_budget)
		config->live.probe_budget = PROBE_BUDGET_DEFAULT;
	if (own_probes_hold(config->live.own)) {
		err = contexts_check(config, samples, e);
		if (err)
			return err;
	}
	if (config->live.own_events && config->live.slower_us)
		return usage(e, "--slower",
			     "lists the calls that took longer: it can't go with --events");
	if (!traced(config))
		return config->record ? recorded_traces(config) : 0;
	if (writes(config, RENDERER_STACKS) && own_probes_report(config->live.own)) {
		err = probe_stacks_check(config, e);
		if (err)
			return err;
	} else if (!samples) {
		return usage(e, typed, "is for a report, --csv, --json and --top");
	}
	if (config->replay && config->live.slower_us)
		return usage(e, typed, "needs the live host: a recording has samples");
	if (config->live.attach)
		return usage(e, typed,
			     "needs probes of its own: it can't go with --attach, which uses those "
			     "of --share as they are");
	if (own_probes_report(config->live.own) && config->live.share)
		return usage(e, "--probe", "can't be shared: leave out --share");
	if (config->live.own) {
		config->live.own->events = config->live.own_events;
		config->live.own->stacks = config->report.stacks || writes(config, RENDERER_STACKS);
	}
	err = config->trace ? trace_kinds_parse(config->trace, &config->live.traces, e) : 0;
	if (!err)
		err = trace_own_set(config->live.own, &own, e);
	if (err)
		return err;
	config->live.traces |= own;
	singles = trace_singles_of(config->live.traces);
	if (config->replay && config->mode == MODE_TOP)
		return usage(e, typed, "of a recording is for a report, --csv and --json");
	if (rows && !config->record && singles && singles != config->live.traces &&
	    !config->live.slower_us)
		return usage(
			e, "--trace",
			"can't mix distributions and single events (exec, opens, connections, dns, "
			"incidents) in one CSV or JSON: "
			"trace one or the other, or add --slower");
	if (config->mode == MODE_TOP && (config->live.slower_us || singles))
		return usage(e, "--top",
			     "shows only distributions: for single events (exec, connections, "
			     "--slower) use a "
			     "report, --csv or --json");
	config->live.events = config->live.slower_us || singles;
	distributed = singles != config->live.traces;
	if (config->record) {
		config->live.distributions = distributed;
		return recorded_traces(config);
	}
	if (!rows && !config->replay && trace_sums_of(config->live.traces))
		distributed = true;
	config->live.distributions = distributed && !(rows && config->live.events);
	if (rows && config->live.events && config->interval_us)
		return usage(e, "-i",
			     "is for reports and distributions: single events are written at once");
	return 0;
}

static int top_check(const struct config *config, struct error *e)
{
	bool top = config->mode == MODE_TOP, rows = writes(config, RENDERER_ROWS);

	if (config->report.csv_safe && (!rows || !config->format->has_formulas))
		return usage(e, "--csv-safe", "is for --csv");
	if (config->groups && (!rows || !config->format->of_groups))
		return usage(e, "--report",
			     "needs --csv or --json (a report is the default output)");
	if (config->groups && (traced(config) || config->stack_dict || config->live.self))
		return usage(e, "--report",
			     "writes groups only: it can't go with --trace, --slower, --stack-dict "
			     "or --self");
	if (config->report.patience_us && !rows)
		return usage(e, "--patience",
			     "is for --csv and --json: a report waits until its end anyway");
	if (config->report.patience_us && (config->groups || traced(config) || config->replay))
		return usage(e, "--patience",
			     "is for samples of the live host: it can't go with --report, --trace, "
			     "--slower or --replay");
	if (!top && (config->text || config->ascii))
		return usage(e, config->text ? "--text" : "--ascii", "is for --top");
	if (!top)
		return 0;
	if (config->count && !config->text)
		return usage(e, "-n", "is for --top --text: the screen ends with q");
	if (config->duration_us)
		return usage(e, "-d", "is for reports and rows: the screen ends with q");
	return 0;
}

static int stacks_check(const struct config *config, struct error *e)
{
	const struct renderer *format = config->mode == MODE_FORMAT ? config->format : NULL;

	if (config->report.stacks && config->mode != MODE_REPORT)
		return usage(e, "--stacks",
			     "is for a report: -G stack adds stacks to rows, --folded and --flame "
			     "write all of them");
	if (config->report.chains && config->mode != MODE_REPORT)
		return usage(e, "--chains",
			     "is for a report; for rows, -G chains adds its columns");
	if (config->by_chain && !(format && format->chains))
		return usage(e, "--by-chain",
			     "needs --folded or --flame (--by chain groups a report)");
	if (config->by_chain && (config->report.off_wake || config->diff))
		return usage(e, "--by-chain",
			     "draws chains, not stacks: it can't go with --off-wake or --diff");
	if (config->report.off_wake && !config->report.stacks && !writes(config, RENDERER_STACKS))
		return usage(e, "--off-wake",
			     "needs --stacks, --folded or --flame: -G waker_stack adds a column");
	if (config->report.off_wake && config->on_cpu)
		return usage(e, "--off-wake", "shows threads off CPU: it can't go with --on-cpu");
	if (config->stack_dict && !config->replay && !config->diff &&
	    (traced(config) || !writes(config, RENDERER_ROWS)))
		return usage(e, "--stack-dict",
			     "is written with --csv or --json, and read with --replay or --diff");
	if (config->stack_dict && !strcmp(config->stack_dict, "-"))
		return usage(e, "--stack-dict",
			     "needs a file: standard input and output are for rows");
	if (format && format->whole && !strcmp(config->output, "-") &&
	    (config->interval_us || config->count > 1))
		return error_set(e, EINVAL, EXIT_USAGE,
				 "%s replaces the file each time, so it needs --%s FILE: standard "
				 "output gets one %s",
				 config->interval_us ? "-i" : "-n", format->name, format->whole);
	if (format && format->at_end && (config->interval_us || config->count))
		return error_set(e, EINVAL, EXIT_USAGE,
				 "--%s writes once, at the end: use -d, not %s", format->name,
				 config->count ? "-n" : "-i");
	if (config->diff && (!format || !format->compares || !config->diff_after))
		return usage(e, "--diff", "needs two files, and --flame FILE");
	if (config->diff && (config->replay || config->interval_us || config->count))
		return usage(e, "--diff",
			     "compares all of two files: it can't go with --replay, -i or -n");
	if ((config->live.stack_bytes || config->live.frame_pointers) &&
	    (config->off_cpu || config->report.off_wake) && !config->on_cpu)
		return usage(e, config->live.frame_pointers ? "--fp" : "--stack-bytes",
			     "is for stacks of threads on a CPU, which --off-cpu and --off-wake "
			     "leave out");
	if (config->live.stack_bytes && config->live.frame_pointers)
		return usage(e, "--stack-bytes", "can't go with --fp, which copies no stack");
	if ((config->live.stack_bytes || config->live.frame_pointers || config->live.python) &&
	    (config->replay || config->diff))
		return usage(e,
			     config->live.python	   ? "--python"
			     : config->live.frame_pointers ? "--fp"
							   : "--stack-bytes",
			     "is for the live host: the stacks of a recording are fixed");
	return 0;
}

/* Reads --when if it is about findings: without -o, intervals until one has them. */
static int when_check(struct config *config, struct error *e)
{
	int given = config->when
			    ? finding_condition_read(&config->report.condition, config->when, e)
			    : 0;

	if (given <= 0 || config->record)
		return given < 0 ? given : 0;
	if (config->mode != MODE_REPORT && !(config->format && config->format->of_findings))
		return usage(e, "--when", "is for a report, --html, --json, --flame and -o");
	config->report.findings = true;
	if (!config->interval_us && !config->count)
		config->count = 1;
	return 0;
}

/* Checks --findings, which has columns of its own, and is about all work and waiting. */
static int findings_check(struct config *config, struct error *e)
{
	const char *option = config->report.condition.given ? "--when" : "--findings";

	if (!config->report.findings)
		return 0;
	if (config->mode != MODE_REPORT && !(config->format && config->format->of_findings))
		return usage(e, option, "is for a report, --html, --json and --flame");
	if (!writes(config, RENDERER_STACKS) && !writes(config, RENDERER_REPORT) &&
	    (config->groups || config->by || config->more_columns || config->report.stacks ||
	     config->report.heatmap))
		return usage(e, option,
			     "shows rows with -g alone: it can't go with --report, -G, --by, "
			     "--stacks or --heatmap");
	if (config->all_states || config->on_cpu || config->off_cpu)
		return usage(
			e, option,
			"covers all work and waiting: it can't go with -a, --on-cpu or --off-cpu");
	if (writes(config, RENDERER_ROWS) &&
	    (config->columns || traced(config) || config->report.patience_us || config->stack_dict))
		return usage(
			e, option,
			"with --json writes findings only: it can't go with -g, --trace, --slower, "
			"--patience or --stack-dict");
	config->report.findings_step_us = config->report.by_time_us;
	config->report.by_time_us = 0;
	return 0;
}

static int record_check(struct config *config, struct error *e)
{
	const struct retention *retention = &config->retention;

	if (config->around_us && !config->when)
		return usage(e, "--keep-around", "needs --when EXPR");
	if (config->around_us > AROUND_MOST_US)
		return usage(e, "--keep-around",
			     "is at most 1h, because the scans before a match are kept in memory");
	if (retention->keep_archive_us && !config->archive_hz)
		return usage(e, "--keep-archive", "needs --archive HZ");
	if (!config->record) {
		if (config->archive_hz)
			return usage(e, "--archive", "needs -o DIR");
		if (config->when && !config->report.condition.given)
			return usage(
				e, "--when",
				"needs -o DIR, unless it is about findings: 'finding=NAME,...' "
				"or 'findings>NUMBER'");
		if (config->flush_us)
			return usage(e, "--flush", "needs -o DIR");
		if (retention->keep_us || retention->keep_bytes || retention->keep_free_tenths)
			return usage(e, "--keep, --keep-bytes and --keep-free", "need -o DIR");
		return 0;
	}
	if (config->mode == MODE_CHECK)
		return 0;
	if (config->mode != MODE_REPORT)
		return error_set(e, EINVAL, EXIT_USAGE,
				 "-o records and prints nothing: it can't go with --%s",
				 option_of_mode(config)->name);
	if (config->replay || config->diff)
		return usage(e, "-o", "records the live host: it can't go with --replay or --diff");
	if (config->stack_dict)
		return usage(e, "--stack-dict",
			     "is not needed with -o: -G ustack,kstack records a dictionary, too");
	config->mode = MODE_RECORD;
	return 0;
}

/* Reads the time of an option. */
static int time_take(const char *option, const char *word, const struct time_context *context,
		     int64_t *time_us, struct error *e)
{
	return time_word_read(word, context, time_us) < 0
		       ? error_set(e, EINVAL, EXIT_USAGE,
				   "%s '%s' is not a time; give " TIME_WORD_HELP, option, word)
		       : 0;
}

static int times_check(struct config *config, struct error *e)
{
	struct recording_part *part = &config->part;
	struct time_context context = {.now_us = clock_utc_us(), .after_us = TIME_NOT_AFTER};
	int err = 0;

	*part = (struct recording_part){.from_us = ABSENT, .until_us = ABSENT};
	if ((config->from || config->to) && !config->replay)
		return usage(e, config->from ? "--from" : "--to", "needs --replay");
	if (config->from)
		err = time_take("--from", config->from, &context, &part->from_us, e);
	if (config->from)
		context.after_us = part->from_us;
	context.of_two_later = true;
	if (!err && config->to)
		err = time_take("--to", config->to, &context, &part->until_us, e);
	if (!err && config->from && config->to && part->from_us >= part->until_us)
		return error_set(e, EINVAL, EXIT_USAGE, "--to '%s' is not after --from '%s'",
				 config->to, config->from);
	return err;
}

/* Reads --against: two times of the recording, or the name of another one. */
static int against_read(struct config *config, struct error *e)
{
	struct recording_part *part = &config->against_part;
	struct time_context context = {.now_us = clock_utc_us(), .after_us = TIME_NOT_AFTER};
	const char *dots = strstr(config->against, "..");
	struct stat there;
	char *from;
	int there_err, err = 0;

	*part = (struct recording_part){.from_us = ABSENT, .until_us = ABSENT};
	there_err = stat(config->against, &there) ? errno : 0;
	config->against_is_time = dots && !strpbrk(config->against, "@/") && there_err;
	if (!config->against_is_time)
		return there_err && !strchr(config->against, '@')
			       ? error_set(e, there_err, EXIT_USAGE, "--against %s: %s",
					   config->against, strerror(there_err))
			       : 0;
	from = memory_text(config->against, (size_t)(dots - config->against));
	if (*from)
		err = time_take("--against", from, &context, &part->from_us, e);
	free(from);
	if (part->from_us != ABSENT)
		context.after_us = part->from_us;
	context.of_two_later = true;
	if (!err && dots[2])
		err = time_take("--against", dots + 2, &context, &part->until_us, e);
	if (!err && part->from_us != ABSENT && part->until_us != ABSENT &&
	    part->from_us >= part->until_us)
		return error_set(e, EINVAL, EXIT_USAGE,
				 "--against '%s': its end is not after its "
				 "begin",
				 config->against);
	return err;
}

static int against_check(struct config *config, struct error *e)
{
	if (!config->against)
		return 0;
	if (!config->replay || !strcmp(config->replay, "-"))
		return usage(e, "--against", "needs --replay FILE|DIR, which is read twice");
	if (!config->report.findings ||
	    (config->mode == MODE_FORMAT && config->format->of_findings != &renderer_html &&
	     config->format->of_findings != &renderer_json_findings))
		return usage(e, "--against", "goes with --findings, as a report, --html or --json");
	if (config->interval_us || config->count || config->report.condition.given)
		return usage(e, "--against", "can't go with -i, -n or --when");
	return against_read(config, e);
}

/* Checks options that are only for recordings. */
static int died_check(struct config *config, struct error *e)
{
	if (!config->died)
		return 0;
	if (!config->replay || !strcmp(config->replay, "-"))
		return usage(e, "--died", "needs --replay FILE|DIR, which is read twice");
	if (config->live.process)
		return usage(e, "--died", "can't go with -p: it chooses the process");
	return died_find(config, e);
}

static int replay_check(struct config *config, struct error *e)
{
	const char *option = config->report.heatmap ? "--heatmap" : "--by-time";

	if (config->report.heatmap && !config->report.by_time_us)
		config->report.by_time_us = HEATMAP_STEP_US;
	if (config->snapshot && !config->replay)
		return usage(e, "--snapshot", "needs --replay FILE|DIR, to copy from");
	if (!config->report.by_time_us)
		return 0;
	if (!config->replay || config->mode != MODE_REPORT)
		return usage(e, option, "is for a report of a recording (--replay)");
	if (config->interval_us || config->count || config->report.stacks)
		return usage(e, option, "can't go with -i, -n or --stacks");
	return 0;
}

struct query config_query(const struct config *config)
{
	return (struct query){
		.columns = config->columns,
		.by = config->by,
		.more_columns = config->more_columns,
		.process = config->live.process,
		.threads = config->live.threads,
		.user = config->user,
		.comm = config->comm,
		.cgroup = config->live.cgroup,
		.filter = config->filter,
		.all_states = config->all_states,
		.on_cpu = config->on_cpu,
		.off_cpu = config->off_cpu,
		.recorded = config->replay != NULL,
	};
}

/* Checks --critical-path, which follows waits through all threads, and counts samples. */
static int path_check(struct config *config, struct error *e)
{
	bool samples = config->mode == MODE_REPORT || writes(config, RENDERER_ROWS) ||
		       writes(config, RENDERER_STACKS);

	if (!config->report.critical_path)
		return 0;
	if (!samples || config->by_chain || config->diff)
		return usage(e, "--critical-path", "is for a report, rows and stacks");
	if (config->replay)
		return usage(e, "--critical-path",
			     "needs the live host: a recording does not say who ended a wait");
	if (config->live.share || config->live.attach)
		return usage(e, "--critical-path",
			     "needs probes of its own: it can't go with --share or --attach");
	if (config->live.process || config->live.threads || config->user || config->comm ||
	    config->live.cgroup || config->filter || config->on_cpu || config->off_cpu ||
	    config->report.off_wake)
		return usage(e, "--critical-path",
			     "follows waits through all threads: it can't go with -p, -t, -u, -c, "
			     "--cgroup, --filter, --on-cpu, --off-cpu or --off-wake");
	if (traced(config) || config->report.chains || config->report.findings ||
	    config->report.patience_us || config->stack_dict)
		return usage(e, "--critical-path",
			     "can't go with --trace, --slower, --chains, --findings, --patience or "
			     "--stack-dict");
	config->all_states = config->report.raw = true;
	return 0;
}

static const char *routines_option(const struct config *config)
{
	return config->tasks ? "--tasks" : "--goroutines";
}

static int goroutines_check(struct config *config, struct error *e)
{
	const char *digits = config->live.process ? config->live.process : "";

	if (config->mode != MODE_GOROUTINES)
		return 0;
	if (!*digits || digits[strspn(digits, "0123456789")] || strlen(digits) > PID_DIGITS_MAX)
		return usage(e, routines_option(config), "needs -p PID: the id of one process");
	if (config->live.descendants || config->live.threads || config->user || config->comm ||
	    config->live.cgroup || config->filter || config->columns || config->by ||
	    (config->more_columns &&
	     (config->tasks || strcmp(config->more_columns, "context") != 0)) ||
	    (config->tasks && config->all_states) || config->duration_us || config->interval_us ||
	    config->count)
		return usage(e, routines_option(config),
			     config->tasks ? "shows one process at one moment: it takes -p PID"
					   : "shows one process at one moment: it takes -p PID, -a "
					     "for the goroutines of Go's runtime, and -G context "
					     "for labels");
	if (config->more_columns && config->live.hides_texts)
		return usage(e, "--goroutines",
			     "-G context has texts, which --query-text off hides");
	config->goroutines_labels = config->more_columns;
	config->goroutines_pid = strtoll(digits, NULL, 10);
	return 0;
}

/* Begins --goroutines or --tasks, which is a mode of its own from here on. */
static int goroutines_begin(struct config *config, struct error *e)
{
	if (!config->goroutines && !config->tasks)
		return 0;
	if (config->goroutines && config->tasks)
		return usage(e, "--tasks", "is for Python: it can't go with --goroutines");
	if (config->mode != MODE_REPORT && !writes(config, RENDERER_ROWS))
		return usage(e, routines_option(config),
			     "goes with --csv or --json, or with no other format");
	config->mode = MODE_GOROUTINES;
	return 0;
}

/* Options that select threads, and modes that show none, where they would be ignored. */
/* clang-format off */
static const struct selection {
	const char *option;
	size_t offset;
	bool flag; /* bool, else text */
} selections[] = {
	{"-p",		offsetof(struct config, live.process),	false},
	{"-r",		offsetof(struct config, live.descendants),	true},
	{"-t",		offsetof(struct config, live.threads),	false},
	{"-u",		offsetof(struct config, user),		false},
	{"-c",		offsetof(struct config, comm),		false},
	{"--cgroup",	offsetof(struct config, live.cgroup),	false},
	{"--filter",	offsetof(struct config, filter),	false},
	{"-a",		offsetof(struct config, all_states),	true},
	{"--on-cpu",	offsetof(struct config, on_cpu),	true},
	{"--off-cpu",	offsetof(struct config, off_cpu),	true},
};

static const char *const threadless[] = {
	[MODE_SNAPSHOT]		= "--snapshot",
	[MODE_LIST]		= "--list",
	[MODE_LIST_JSON]	= "--list",
	[MODE_CHECK]		= "--check",
	[MODE_WRITE_OFFSETS]	= "--write-offsets",
	[MODE_HELP]		= NULL,
};
/* clang-format on */

static int selection_check(const struct config *config, struct error *e)
{
	for (size_t i = 0; i < sizeof(selections) / sizeof(selections[0]); i++) {
		const struct selection *row = &selections[i];
		const char *at = (const char *)config + row->offset;

		if (threadless[config->mode] &&
		    (row->flag ? *(const bool *)at : *(const char *const *)at != NULL))
			return error_set(e, EINVAL, EXIT_USAGE,
					 "%s selects threads: it can't go with %s", row->option,
					 threadless[config->mode]);
	}
	return 0;
}

/* Takes the columns, the filter and the states of --view. */
static int view_take(struct config *config, struct error *e)
{
	const struct saved_view *view;

	if (!config->view)
		return 0;
	if (config->columns || config->by || config->filter)
		return usage(e, "--view",
			     "has its own columns and filter: it can't go with -g, --by or "
			     "--filter (-G adds columns; -p, -u, -c and --cgroup choose threads)");
	if (!reports(config) && !config->groups && config->mode != MODE_TOP)
		return usage(e, "--view", "is for reports and --top");
	view = saved_view_find(config->view, e);
	if (!view)
		return -EINVAL;
	if (config->mode == MODE_TOP && view->sort)
		return error_set(e, EINVAL, EXIT_USAGE,
				 "--view %s is for reports: --top does not keep its columns",
				 view->name);
	config->columns = view->columns;
	config->filter = *view->filter ? view->filter : NULL;
	config->all_states |= view->all_states;
	if (!config->sort && !config->report.by_time_us)
		config->sort = view->sort;
	return 0;
}

/* Fills in what a report without options for its contents shows: findings, and rows of programs. A
 * page has findings beside any rows. */
static void contents_check(struct config *config)
{
	bool flame = writes(config, RENDERER_STACKS) && config->format->of_findings;
	bool page = writes(config, RENDERER_REPORT);
	bool rows_chosen = config->columns || config->by || config->more_columns;

	if ((!reports(config) && (!flame || config->diff || config->by_chain)) ||
	    config->report.off_wake || config->report.critical_path || traced(config) ||
	    config->report.by_time_us || config->all_states || config->on_cpu || config->off_cpu)
		return;
	if (!page && (rows_chosen || config->report.stacks || config->report.chains ||
		      config->report.findings))
		return;
	config->report.findings = true;
	if (!flame && !rows_chosen)
		config->columns = "programs";
}

/* The kind that --slower reports where --trace names none. */
static const char *slower_kind(void)
{
	const struct trace_kind *kinds[TRACE_KINDS_MAX];
	size_t at = trace_kinds_list(~0u, kinds);

	while (at-- && !kinds[at]->slower)
		;
	return kinds[at]->name;
}

static int query_text_check(struct config *config, struct error *e)
{
	const char *word = config->query_text ? config->query_text : "on";

	config->live.hides_texts = !strcmp(word, "off");
	return config->live.hides_texts || !strcmp(word, "on")
		       ? 0
		       : error_set(e, EINVAL, EXIT_USAGE, "--query-text %s: it is on or off", word);
}

int config_check(struct config *config, struct error *e)
{
	int begun = goroutines_begin(config, e), err = begun ? begun : when_check(config, e);
	bool rows = writes(config, RENDERER_ROWS) && !config->groups && !config->report.findings;
	bool samples = config->mode == MODE_REPORT || config->mode == MODE_FORMAT ||
		       config->mode == MODE_TOP;
	bool recorded = config->replay || config->diff;

	if (!err)
		err = record_check(config, e);
	if (!err)
		err = selection_check(config, e);
	if (!err)
		err = times_check(config, e);
	if (!err)
		err = replay_check(config, e);
	if (!err)
		err = died_check(config, e);
	if (!err)
		err = query_text_check(config, e);
	if (err)
		return err;
	rows |= config->mode == MODE_RECORD;
	samples |= config->mode == MODE_RECORD;
	if (config->live.slower_us && !traced(config))
		config->trace = slower_kind();
	if (config->live.descendants && !config->live.process)
		return usage(e, "-r", "needs a process: tsnap -r NAME");
	err = view_take(config, e);
	if (err)
		return err;
	/* whoever asks for a process wants to see what it does, idle or not */
	if (config->named && reports(config) && !config->on_cpu && !config->off_cpu &&
	    !config->filter)
		config->all_states = true;
	contents_check(config);
	if (rows && config->interval_us && !traced(config))
		return usage(e, "-i",
			     "is for reports and --trace: --csv and --json write every scan");
	if (config->by && config->columns)
		return usage(e, "--by", "can't go with -g: use -G to add columns to either");
	if (config->by && (!samples || rows))
		return usage(e, "--by", "is for reports and stacks");
	if (config->sort && ((!reports(config) && !config->groups) || config->report.by_time_us))
		return usage(e, "--sort",
			     "is for reports: other formats, and --by-time, have their own order");
	if (config->mode == MODE_LIST_JSON && config->list_word)
		return usage(e, "--list WORD", "prints text: --list --json lists everything");
	if (config->report.all_rows && config->mode != MODE_REPORT)
		return usage(e, "--all-rows", "is for reports: other formats have all rows");
	if (config->report.raw && rows)
		return usage(e, "--raw", "is for reports and stacks: rows are samples");
	if (config->replay && !samples && !config->snapshot)
		return usage(e, "--replay", "is for a report, rows and stacks");
	if (recorded && config->live.rate_hz)
		return usage(e, "-F", "is for the live host: the rate of a recording is fixed");
	if (config->replay && config->live.self)
		return usage(e, "--self", "needs the live host: a replay runs no BPF programs");
	if (config->live.self && !rows && config->mode != MODE_REPORT)
		return usage(e, "--self", "is for a report, --csv and --json");
	if (recorded && config->live.daemon_ports)
		return usage(
			e, "--daemon-ports",
			"is for the live host: a recording already says which threads are idle");
	if (recorded && config->live.descendants)
		return usage(e, "-r", "needs the live host: a recording does not have all parents");
	if (recorded && probes_chosen(config))
		return usage(e, config->diff ? "--diff" : "--replay",
			     "can't go with options that are for the live host");
	err = goroutines_check(config, e);
	if (!err)
		err = source_check(config, e);
	if (!err)
		err = top_check(config, e);
	if (!err)
		err = stacks_check(config, e);
	if (!err)
		err = findings_check(config, e);
	if (!err)
		err = against_check(config, e);
	if (!err)
		err = path_check(config, e);
	if (!err)
		err = share_check(config, samples, e);
	if (!err)
		err = programs_check(config, samples, e);
	if (!err)
		err = trace_check(
			config, rows || config->mode == MODE_REPORT || config->mode == MODE_TOP, e);
	if (err)
		return err;
	config->off_cpu |= config->report.off_wake;
	config->all_states |= config->off_cpu;
	if (!config->live.stack_bytes)
		config->live.stack_bytes = STACK_BYTES_DEFAULT;
	config->live.stack_bytes &= ~7; /* multiple of 8 */
	if (!config->live.rate_hz)
		config->live.rate_hz = config->record ? RATE_RECORD_HZ : RATE_DEFAULT_HZ;
	if (config->archive_hz >= config->live.rate_hz && config->archive_hz)
		return usage(e, "--archive",
			     "must be lower than -F: it keeps only some of the scans");
	config->retention.has_archive = config->archive_hz;
	if (!config->flush_us)
		config->flush_us = FLUSH_DEFAULT_US;
	if (!config->live.daemon_ports)
		config->live.daemon_ports = DAEMON_PORTS_DEFAULT;
	config->live.loads_more = config->mode == MODE_TOP;
	config->live.writes =
		config->record || config->output || config->stack_dict || config->mode == MODE_TOP;
	return kernel_types_check(config, e);
}

const char **config_replay_paths(const struct config *config)
{
	const char **paths;
	size_t count = 0;

	while (config->replay_more && config->replay_more[count])
		count++;
	paths = memory_get((count + 2) * sizeof(*paths));
	paths[0] = config->replay;
	for (size_t i = 0; i < count; i++)
		paths[i + 1] = config->replay_more[i];
	return paths;
}
