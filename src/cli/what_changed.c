/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --against: what changed since another time of the recording, or since another recording. Both are
 * read here, in the same way, whatever else the report shows of the time after: threads by the
 * columns below, as far as both have them, with exact times, a slice after the other.
 */
#include "cli/part_table.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/signals.h"
#include "cli/config.h"
#include "render/render_rows.h"
#include "render/renderer.h"
#include "report/changes.h"
#include "report/group_split.h"
#include "report/value.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define SLICE_SCANS 10

/* Columns whose values may carry a difference: of two that say the same, the first one is named. */
static const char column_names[] =
	"commsum,state,syscall,waits_onsum,io_dev,runq_why,workqueue,querysum,app_wait,ufunc,kfunc,"
	"filenamesum,root,root_waits_on,database,service,container_name,container,unit,script,exe,"
	"user";

/* Threads in a state for which they wait have an age. */
static const struct column age_column = {
	"age", "", "", KIND_NUMBER, ROLE_SUM, 0, 0, offsetof(struct sample, now.state_us),
};

/* The values of a column, as numbers from 1 on. */
struct value_numbers {
	struct index numbers;
	union value *values;
	size_t count, capacity;
};

struct what_changed {
	struct report *report;
	struct config sides[SIDE_COUNT]; /* the options of a replay of each */
	struct column_list list;	 /* those columns, then age_column */
	struct value_numbers numbers[CHANGE_COLUMNS_MAX];
	struct changes changes;
	struct error failed; /* why a side could not be read */
	bool has_stacks;     /* both have them: a flame graph can be made of the difference */
};

static int changed_begin(void *state, struct report *report)
{
	const struct config *config = report->options;
	struct what_changed *what = state;
	struct config *before = &what->sides[SIDE_BEFORE];

	/* not in a replay of a step, for its first finding */
	if (!config->against ||
	    (report->renderer != &renderer_report && report->renderer != &renderer_html &&
	     report->renderer != &renderer_json_findings))
		return 0;
	what->report = report;
	what->sides[SIDE_BEFORE] = what->sides[SIDE_AFTER] = *config;
	before->part = config->against_part;
	if (!config->against_is_time) {
		before->replay = config->against;
		before->replay_more = NULL;
		before->stack_dict = NULL;
	}
	return 1;
}

/* Reading ---------------------------------------------------------------------------------------
 */

static uint32_t value_number(struct value_numbers *of, const struct column *column,
			     union value value)
{
	uint64_t *number;

	if (value_is_absent(column, value))
		return 0;
	number = index_put(&of->numbers, (uint64_t)value.number, NULL);
	if (!*number) {
		of->values =
			memory_grow(of->values, &of->capacity, of->count + 1, sizeof(*of->values));
		of->values[of->count++] = value;
		*number = of->count;
	}
	return (uint32_t)*number;
}

/* A time that is read. */
struct period {
	struct what_changed *what;
	enum change_side side;
	struct filter filter;
	struct source *source;
	struct exact_times times;
	struct group_table table;
	int64_t scans, elapsed_us; /* of the present slice so far */
	int64_t all_us;		   /* of all slices so far */
};

static int period_open(struct period *period, struct error *e)
{
	struct what_changed *what = period->what;
	struct report *report = what->report;
	struct column_list all = {0};
	int err = query_filter(&report->query, &period->filter, e);

	if (!err)
		err = column_list_add(&all, column_names, false, e);
	if (!err)
		err = report->open_source(&what->sides[period->side], &period->filter,
					  column_list_needs(&all) | NEED_TOTALS, &period->source,
					  e);
	return err;
}

/* Chooses the columns that both have. */
static void columns_choose(struct what_changed *what, struct period *periods)
{
	struct column_list all = {0};
	struct error unsaid = {0};

	column_list_add(&all, column_names, false, &unsaid);
	error_done(&unsaid);
	for (size_t i = 0; i < all.count; i++) {
		const struct column *column = all.items[i];
		bool lacks = false;

		for (int side = 0; side < SIDE_COUNT; side++) {
			struct source *source = periods[side].source;

			lacks |= source->lacks && source->lacks(source, column);
		}
		if (!strcmp(column->name, "commsum"))
			what->changes.program_column = what->list.count;
		if (!strcmp(column->name, "state"))
			what->changes.state_column = what->list.count;
		/* these two are always there: a recording without them is told so */
		if (!lacks || !strcmp(column->name, "commsum") || !strcmp(column->name, "state"))
			what->list.items[what->list.count++] = column;
	}
	what->changes.column_count = what->list.count;
	what->list.items[what->list.count++] = &age_column;
	what->has_stacks = true;
	for (int side = 0; side < SIDE_COUNT; side++) {
		struct source *source = periods[side].source;

		what->has_stacks &=
			source->lacks && !source->lacks(source, sample_column_find("stack"));
	}
}

/* Takes a sample that the filter refuses, of a thread that it may accept (report/groups.c). */
static void refused_take(struct period *period, const struct sample *sample)
{
	struct sample account;

	if (!filter_keeps_threads(&period->filter)) {
		exact_times_add(&period->times, sample);
		return;
	}
	if (!exact_times_has(&period->times, sample))
		return;
	account = sample_account(sample);
	sample_derive(&account, column_list_needs(&period->what->list));
	if (filter_eval_thread(&period->filter, &account, ~0ull) == VERDICT_ACCEPTED)
		group_table_add_account(&period->table, &account);
}

static void sample_take(struct period *period, const struct sample *sample)
{
	struct exact_note note = EXACT_NOTE_NONE;
	struct sample group = *sample;

	if (period->table.split)
		note = exact_times_add(&period->times, sample);
	if (sample->now.state == STATE_ON) {
		group.now.state_us = ABSENT;
		/* a thread that computes has the file of its last call */
		if (!sample->call.name)
			group.file.name = group.file.namesum = NULL;
	}
	/* a thread that waits for nobody is its own root */
	if (sample->chain.depth <= 0)
		group.chain.root.comm = group.chain.root.waits_on = NULL;
	group_table_add_noted(&period->table, &group, note);
}

static void slice_end(struct period *period)
{
	struct what_changed *what = period->what;
	struct group_table *table = &period->table;

	group_tables_share_out(&period->times);
	exact_times_end_interval(&period->times);
	for (size_t at = 0; at < table->count; at++) {
		const union value *group = group_at(table, at);
		uint32_t values[CHANGE_COLUMNS_MAX];
		int64_t samples = group_samples(table, group);
		int64_t age_us = group[table->word_of[what->changes.column_count]].number;

		for (size_t i = 0; i < what->changes.column_count; i++)
			values[i] = value_number(&what->numbers[i], table->keys[i], group[i]);
		changes_add(&what->changes, period->side, values, group_weight_us(table, group),
			    samples, age_us == ABSENT ? 0 : samples, age_us == ABSENT ? 0 : age_us);
	}
	changes_end_slice(&what->changes, period->side, period->elapsed_us);
	group_table_clear(table);
	period->elapsed_us = period->scans = 0;
}

static void scan_take(struct period *period, const struct scan *scan)
{
	struct change_slices *slices = &period->what->changes.slices[period->side];

	period->scans = sum(period->scans, 1 + ratio(scan->silent_us, 1, scan->weight_us));
	period->elapsed_us = sum(period->elapsed_us, sum(scan->silent_us, scan->weight_us));
	period->all_us = sum(period->all_us, sum(scan->silent_us, scan->weight_us));
	/* the first sample of a slice has the time since one of an earlier slice: it all counts */
	exact_times_at(&period->times, period->all_us);
	for (size_t i = 0; i < scan->refused_count; i++)
		refused_take(period, &scan->refused[i]);
	for (size_t i = 0; i < scan->count; i++)
		sample_take(period, &scan->samples[i]);
	if (group_tables_crowded(&period->times))
		group_tables_share_out(&period->times);
	if (period->scans >= SLICE_SCANS * (slices->merged ? slices->merged : 1))
		slice_end(period);
}

static int period_read(struct period *period, struct error *e)
{
	struct what_changed *what = period->what;
	struct scan scan = {0};
	int more = 1;

	period->times.shared = what->report->times.shared;
	group_table_init(&period->table, &what->list);
	if (period->times.shared)
		group_table_split(&period->table, &period->times,
				  filter_keeps_threads(&period->filter) ? REST_GROUPS
									: REST_LEFT_OUT);
	period->source->keeps_refused = period->times.shared;
	while (more && !signals_stop()) {
		more = period->source->next(period->source, &scan, e);
		if (more == -EINTR)
			continue;
		if (more < 0)
			return more;
		if (more)
			scan_take(period, &scan);
	}
	if (period->elapsed_us)
		slice_end(period);
	return signals_stop() ? error_set(e, EINTR, EXIT_FAILED, "stopped before all was read") : 0;
}

static void period_done(struct period *period)
{
	if (period->source)
		period->source->close(period->source);
	group_table_done(&period->table);
	exact_times_done(&period->times);
	filter_done(&period->filter);
}

static void changed_end(void *state, struct report *report)
{
	struct what_changed *what = state;
	struct period periods[SIDE_COUNT] = {{.side = SIDE_BEFORE}, {.side = SIDE_AFTER}};
	struct error *e = &what->failed;
	int err = 0;

	(void)report;
	for (int side = 0; side < SIDE_COUNT; side++) {
		periods[side].what = what;
		err = err ? err : period_open(&periods[side], e);
	}
	if (!err) {
		columns_choose(what, periods);
		what->changes.on_value = value_number(&what->numbers[what->changes.state_column],
						      what->list.items[what->changes.state_column],
						      (union value){.number = STATE_ON});
	}
	for (int side = 0; side < SIDE_COUNT; side++)
		err = err ? err : period_read(&periods[side], e);
	for (int side = 0; side < SIDE_COUNT; side++)
		period_done(&periods[side]);
	if (!err)
		changes_find(&what->changes);
}

/* Telling ---------------------------------------------------------------------------------------
 */

/* Adds a value as text; quoted: as expressions of --filter have it. */
static void value_tell(struct text *out, const struct what_changed *what, struct change_term term,
		       bool quoted)
{
	const struct column *column = what->list.items[term.column];
	struct text text = {0};

	value_add(&text, column, what->numbers[term.column].values[term.value - 1]);
	if (quoted && column_is_text(column)) {
		text_add_char(out, '"');
		for (const char *at = text_string(&text); *at; at++) {
			if (*at == '"')
				text_add_char(out, '\\');
			text_add_char(out, *at);
		}
		text_add_char(out, '"');
	} else {
		text_add_string(out, text_string(&text));
	}
	text_done(&text);
}

static void terms_tell(struct text *out, const struct what_changed *what,
		       const struct change_term *terms, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		text_add_format(out, "%s%s ", i ? ", " : "",
				what->list.items[terms[i].column]->name);
		value_tell(out, what, terms[i], false);
	}
}

/* Adds what a change is in words: it is new, gone, slower, or there is more of it. */
static void kind_tell(struct text *out, const struct change *change)
{
	double longer, oftener;

	if (change_lacks(change, SIDE_BEFORE) || change_lacks(change, SIDE_AFTER)) {
		text_add_string(out, change_lacks(change, SIDE_BEFORE) ? "new" : "gone");
		return;
	}
	text_add_string(out, change_difference(change) > 0 ? "more" : "less");
	if (!change_waits(change, &longer, &oftener))
		return;
	text_add_format(out, ": each wait %.2g times as long, %.2g times as many", longer, oftener);
}

/* Seconds of threads in the time after. */
static double seconds_of(const struct what_changed *what, double threads)
{
	const struct change_slices *slices = &what->changes.slices[SIDE_AFTER];
	double elapsed_us = 0;

	for (size_t i = 0; i < slices->count; i++)
		elapsed_us += (double)slices->elapsed_us[i];
	return threads * elapsed_us / 1e6;
}

static void change_tell(struct text *out, const struct what_changed *what,
			const struct change *change)
{
	double difference = change_difference(change);

	terms_tell(out, what, change->terms, change->term_count);
	text_add_format(out, ": %+.2f +- %.2f threads (%.2f, before %.2f; %+.1f thread-seconds); ",
			difference, change->error, change->threads[SIDE_AFTER],
			change->threads[SIDE_BEFORE], seconds_of(what, difference));
	kind_tell(out, change);
	if (!change->also_count)
		return;
	text_add_string(out, " (");
	terms_tell(out, what, change->also, change->also_count);
	text_add_char(out, ')');
}

/* Adds how times were normalised: by what, or why not. */
static void work_tell(struct text *out, const struct changes *changes)
{
	if (!changes->work)
		text_add_format(out,
				"per second of time: %zu program%s with CPU time %s too few to "
				"tell how much work was done",
				changes->programs, changes->programs == 1 ? "" : "s",
				changes->programs == 1 ? "is" : "are");
	else
		text_add_format(out,
				"%s: the median of %zu programs used %.2f times as much CPU time "
				"per second as before",
				changes->normalised ? "per work done" : "per second of time",
				changes->programs, changes->work);
}

/* Adds the filter that selects the samples of a change. */
static void filter_tell(struct text *out, const struct what_changed *what,
			const struct change *change)
{
	for (size_t i = 0; i < change->term_count; i++) {
		text_add_format(out, "%s%s=", i ? " && " : "",
				what->list.items[change->terms[i].column]->name);
		value_tell(out, what, change->terms[i], true);
	}
}

/* Adds a name of a recording and its part, as --diff takes it. */
static void side_name(struct text *out, const struct config *side)
{
	const struct recording_part *part = &side->part;
	char time[CLOCK_ISO_SIZE];
	struct text name = {0};

	text_add_string(&name, side->replay);
	if (part->from_us != ABSENT || part->until_us != ABSENT) {
		text_add_char(&name, '@');
		if (part->from_us != ABSENT) {
			clock_format_iso(part->from_us, time);
			text_add_string(&name, time);
		}
		text_add_string(&name, "..");
		if (part->until_us != ABSENT) {
			clock_format_iso(part->until_us, time);
			text_add_string(&name, time);
		}
	}
	text_add_word(out, text_string(&name));
	text_done(&name);
}

/* Adds the command that shows the stacks of a change; nothing where there are none. */
static void command_tell(struct text *out, const struct what_changed *what,
			 const struct change *change)
{
	struct text filter = {0};

	if (!what->has_stacks || what->report->options->replay_more ||
	    what->report->options->stack_dict)
		return;
	text_add_string(out, "tsnap --flame changed.svg --diff ");
	side_name(out, &what->sides[SIDE_BEFORE]);
	text_add_char(out, ' ');
	side_name(out, &what->sides[SIDE_AFTER]);
	text_add_string(out, " --filter ");
	filter_tell(&filter, what, change);
	text_add_word(out, text_string(&filter));
	text_done(&filter);
}

/* Why there is no comparison; NULL: there is one. */
static const char *refusal(const struct what_changed *what)
{
	return what->failed.line[0]	      ? what->failed.line
	       : what->changes.refused.length ? text_string(&what->changes.refused)
					      : NULL;
}

static void changed_below(struct text *out, const struct interval *interval, void *state)
{
	const struct what_changed *what = state;
	const struct changes *changes = &what->changes;
	struct text line = {0};

	text_add_char(out, '\n');
	text_add_string(&line, "What changed against ");
	text_add_printable(&line, what->report->options->against);
	if (refusal(what)) {
		text_add_format(&line, ": not compared: %s", refusal(what));
		interval_add_line(out, interval, &line);
		return;
	}
	text_add_format(&line, ": %.2f threads work or wait, before %.2f; ",
			changes->threads[SIDE_AFTER], changes->threads[SIDE_BEFORE]);
	work_tell(&line, changes);
	interval_add_line(out, interval, &line);
	for (size_t i = 0; i < changes->count; i++) {
		text_add_format(&line, "%zu. ", i + 1);
		change_tell(&line, what, &changes->found[i]);
		interval_add_line(out, interval, &line);
		command_tell(&line, what, &changes->found[i]);
		if (line.length)
			text_add_format(out, "   %s\n", text_string(&line));
		text_clear(&line);
	}
	if (!changes->count)
		text_add_format(&line, "nothing is clearly different, of %zu sets of values",
				changes->searched);
	else
		text_add_format(&line, "%s, of %zu sets of values that were compared",
				changes->more ? "There is more" : "No other difference is clear",
				changes->searched);
	interval_add_line(out, interval, &line);
}

static void json_add_double(struct text *out, const char *member, double value)
{
	text_add_format(out, ",\"%s\":%.3f", member, value);
}

static void json_add_terms(struct text *out, const char *member, const struct what_changed *what,
			   const struct change_term *terms, size_t count)
{
	struct text value = {0}, before = {0};

	text_add_format(out, ",\"%s\":{", member);
	for (size_t i = 0; i < count; i++) {
		value_tell(&value, what, terms[i], false);
		text_add_format(&before, "%s\"%s\":", i ? "," : "",
				what->list.items[terms[i].column]->name);
		json_add_text(out, text_string(&before), text_string(&value));
		text_clear(&value);
		text_clear(&before);
	}
	text_add_char(out, '}');
	text_done(&value);
	text_done(&before);
}

static void json_add_change(struct text *out, const struct what_changed *what,
			    const struct change *change, size_t rank)
{
	struct text text = {0};
	double longer, oftener;

	json_add_text(out, "{\"finding\":", "changed");
	json_add_number(out, "rank", (int64_t)rank);
	json_add_terms(out, "set", what, change->terms, change->term_count);
	json_add_terms(out, "also", what, change->also, change->also_count);
	json_add_double(out, "threads", change->threads[SIDE_AFTER]);
	json_add_double(out, "threads_before", change->threads[SIDE_BEFORE]);
	json_add_double(out, "error", change->error);
	json_add_double(out, "difference_s", seconds_of(what, change_difference(change)));
	json_add_number(out, "samples", change->samples[SIDE_AFTER]);
	json_add_number(out, "samples_before", change->samples[SIDE_BEFORE]);
	if (change_waits(change, &longer, &oftener)) {
		json_add_double(out, "longer", longer);
		json_add_double(out, "oftener", oftener);
	}
	change_tell(&text, what, change);
	json_add_text(out, ",\"text\":", text_string(&text));
	text_clear(&text);
	command_tell(&text, what, change);
	if (text.length)
		json_add_text(out, ",\"command\":", text_string(&text));
	text_done(&text);
}

static void changed_objects(struct text *out, const char *end, void *state)
{
	const struct what_changed *what = state;
	const struct changes *changes = &what->changes;
	struct text text = {0};

	for (size_t i = 0; i < changes->count; i++) {
		json_add_change(out, what, &changes->found[i], i + 1);
		text_add_string(out, end);
	}
	json_add_text(out, "{\"finding\":", "compared");
	json_add_text(out, ",\"against\":", what->report->options->against);
	json_add_double(out, "threads", changes->threads[SIDE_AFTER]);
	json_add_double(out, "threads_before", changes->threads[SIDE_BEFORE]);
	json_add_number(out, "changes", (int64_t)(changes->count + changes->more));
	json_add_number(out, "searched", (int64_t)changes->searched);
	if (changes->work > 0)
		json_add_double(out, "work", changes->work);
	json_add_number(out, "normalised", changes->normalised);
	if (refusal(what)) {
		json_add_text(out, ",\"refused\":", refusal(what));
	} else {
		work_tell(&text, changes);
		json_add_text(out, ",\"text\":", text_string(&text));
	}
	text_add_string(out, end);
	text_done(&text);
}

static void changed_done(void *state)
{
	struct what_changed *what = state;

	for (size_t i = 0; i < CHANGE_COLUMNS_MAX; i++) {
		index_clear(&what->numbers[i].numbers);
		free(what->numbers[i].values);
	}
	changes_done(&what->changes);
	error_done(&what->failed);
}

const struct report_part changed_part = {.bytes = sizeof(struct what_changed),
					 .begin = changed_begin,
					 .end = changed_end,
					 .below = changed_below,
					 .objects = changed_objects,
					 .done = changed_done};
