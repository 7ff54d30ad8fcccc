/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sample/filter/filter.h"
#include "sample/filter/process_name.h"
#include "sample/column.h"
#include "sample/wait_rule.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

/* Reads a number without sign below 2^32 and the character after it. */
static int id_read(const char **text, int64_t *id)
{
	const char *at = *text;

	for (*id = 0; *at >= '0' && *at <= '9'; at++) {
		*id = *id * 10 + (*at - '0');
		if (*id > UINT32_MAX)
			return -EINVAL;
	}
	if (at == *text)
		return -EINVAL;
	*text = at;
	return 0;
}

static int ids_read(struct index *ids, const char *option, const char *text, struct error *e)
{
	const char *at = text;
	int64_t id;

	for (;; at++) {
		if (id_read(&at, &id) || id == 0 || (*at && *at != ','))
			return error_set(e, EINVAL, EXIT_USAGE,
					 "%s %s: ids must be positive numbers, separated by commas",
					 option, text);
		index_put(ids, (uint64_t)id, NULL);
		if (!*at)
			return 0;
	}
}

/* Adds a part of -p: an id, or else a name, which is stored with its NUL. */
static int process_add(struct filter *filter, const char *part)
{
	const char *at = part;
	int64_t id;

	if (part[strspn(part, "0123456789")]) {
		text_add(&filter->names, part, strlen(part) + 1);
		return 0;
	}
	if (id_read(&at, &id) || !id)
		return -EINVAL;
	filter->by_pid = true;
	index_put(&filter->pids, (uint64_t)id, NULL);
	return 0;
}

int filter_set_process(struct filter *filter, const char *text, struct error *e)
{
	struct text part = {0};
	const char *rest = text;
	int err = 0;

	if (!text[strspn(text, "0123456789,")]) {
		filter->by_pid = true;
		return ids_read(&filter->pids, "-p", text, e);
	}
	while (!err && text_next_name(&part, &rest))
		err = process_add(filter, text_string(&part));
	if (err)
		error_set(e, EINVAL, EXIT_USAGE,
			  "-p %s: '%s' is neither an id nor a name; give ids (positive numbers) "
			  "and names, separated by commas",
			  text, text_string(&part));
	text_done(&part);
	return err;
}

int filter_set_threads(struct filter *filter, const char *text, struct error *e)
{
	filter->by_tid = true;
	return ids_read(&filter->tids, "-t", text, e);
}

/* Finds the states that the expression may accept, whatever else is known. */
static void states_find(struct filter *filter)
{
	struct sample sample = *sample_absent();

	filter->states = 0;
	if (!(filter->expression.needs & KNOWN_STATE))
		return;
	for (sample.now.state = 0; sample.now.state < STATE_COUNT; sample.now.state++)
		if (expression_eval(&filter->expression, &sample, KNOWN_STATE) != VERDICT_REFUSED)
			filter->states |= 1u << sample.now.state;
}

static void idle_classes_find(struct filter *filter)
{
	struct sample sample = *sample_absent();

	if (!(filter->expression.needs & NEED_WAIT_CLASS))
		return;
	sample.now.state = STATE_SLEEP;
	for (size_t i = 0; i < wait_rule_count; i++) {
		sample.wait.why = wait_rules[i].name;
		filter->idle_classes |= !(wait_rules[i].traits & WAIT_WORKS) &&
					expression_eval(&filter->expression, &sample,
							KNOWN_STATE | NEED_WAIT_CLASS |
								NEED_SYSCALL) != VERDICT_REFUSED;
	}
}

int filter_set_expression(struct filter *filter, const char *text, struct error *e)
{
	int err = expression_add(&filter->expression, text, e);

	filter->idle_classes = false;
	if (!err) {
		states_find(filter);
		idle_classes_find(filter);
	}
	return err;
}

void filter_set_pattern(struct filter *filter, const char *column, const char *pattern)
{
	expression_add_pattern(&filter->expression, sample_column_find(column), pattern);
}

static void quoted_add(struct text *text, const char *value)
{
	text_add_char(text, '"');
	for (; *value; value++) {
		if (strchr("\"\\", *value))
			text_add_char(text, '\\');
		text_add_char(text, *value);
	}
	text_add_char(text, '"');
}

/* Filters by a user. A sample may have number and name: the form that the user typed decides. */
int filter_set_user(struct filter *filter, const char *text, bool anywhere, struct error *e)
{
	struct text expression = {0};
	const char *at = text;
	struct passwd *entry;
	int64_t id;
	int err;

	if (!id_read(&at, &id) && !*at) {
		entry = getpwuid((uid_t)id);
		text_add_format(&expression, "uid=%lld || uid= && user=", (long long)id);
		quoted_add(&expression, entry ? entry->pw_name : text);
	} else {
		entry = getpwnam(text);
		if (!entry && !anywhere)
			return error_set(e, EINVAL, EXIT_USAGE, "-u %s: no such user", text);
		text_add_string(&expression, "user=");
		quoted_add(&expression, text);
		if (entry)
			text_add_format(&expression, " || user= && uid=%u", entry->pw_uid);
	}
	err = filter_set_expression(filter, text_string(&expression), e);
	text_done(&expression);
	return err;
}

void filter_add_pid(struct filter *filter, int64_t pid)
{
	filter->by_pid = true;
	text_clear(&filter->names);
	index_put(&filter->pids, (uint64_t)pid, NULL);
	filter->changes++;
}

void filter_remove_pid(struct filter *filter, int64_t pid)
{
	index_remove(&filter->pids, (uint64_t)pid);
	filter->changes++;
}

void filter_remove_tid(struct filter *filter, int64_t tid)
{
	index_remove(&filter->tids, (uint64_t)tid);
	filter->changes++;
}

/* True if one of the names matches. */
static bool process_matches(const struct text *names, const struct sample *sample)
{
	for (size_t at = 0; at < names->length; at += strlen(names->bytes + at) + 1)
		if (process_name_matches(names->bytes + at, sample->thread.comm,
					 sample->process.exe, sample->process.script))
			return true;
	return false;
}

static bool pid_is_listed(const struct filter *filter, int64_t pid)
{
	return filter->by_pid && index_find(&filter->pids, (uint64_t)pid);
}

bool filter_reads_column(const struct filter *filter, const struct column *column)
{
	return (filter->names.length && column->needs & NEEDS_OF_NAMES) ||
	       expression_reads_column(&filter->expression, column);
}

uint64_t filter_needs(const struct filter *filter)
{
	const uint64_t known = KNOWN_IDS | KNOWN_STATE | KNOWN_RECORD | KNOWN_EVENT;

	return (filter->expression.needs & ~known) |
	       (filter->names.length ? sample_needs_close(NEEDS_OF_NAMES) : 0) |
	       (filter_wants_work(filter) ? NEED_WAIT_CLASS | NEED_SYSCALL : 0);
}

bool filter_wants_state(const struct filter *filter, int64_t state)
{
	const struct state_row *row = state_row(state);

	if (filter->no_samples)
		return false;
	if (filter->on_cpu != filter->off_cpu && (!row || (state == STATE_ON) != filter->on_cpu))
		return false;
	if (filter->states)
		return !row || filter->states >> state & 1;
	return filter->all_states || !row || row->active || state == STATE_SLEEP;
}

bool filter_wants_work(const struct filter *filter)
{
	return !filter->no_samples && filter->on_cpu == filter->off_cpu && !filter->states &&
	       !filter->all_states && !filter->idle_classes;
}

bool filter_keeps_threads(const struct filter *filter)
{
	return !(filter->expression.needs & ~(KNOWN_IDS | NEEDS_OF_THREADS));
}

bool filter_wants_idle(const struct filter *filter)
{
	bool wanted = false;

	for (int64_t state = 0; state < STATE_COUNT; state++)
		wanted |= !state_row(state)->active && filter_wants_state(filter, state) &&
			  !(state == STATE_SLEEP && filter_wants_work(filter));
	return wanted;
}

static bool ids_exclude(const struct filter *filter, int64_t pid, int64_t tid)
{
	return (filter->by_pid && !filter->names.length && !pid_is_listed(filter, pid)) ||
	       (filter->by_tid && !index_find(&filter->tids, (uint64_t)tid));
}

bool filter_excludes(const struct filter *filter, int64_t pid, int64_t tid)
{
	if (ids_exclude(filter, pid, tid))
		return true;
	if (!(filter->expression.needs & KNOWN_IDS))
		return false;
	return expression_eval(&filter->expression,
			       &(struct sample){.thread.pid = pid, .thread.tid = tid},
			       KNOWN_IDS) == VERDICT_REFUSED;
}

enum verdict filter_eval_thread(const struct filter *filter, const struct sample *sample,
				uint64_t known)
{
	if (ids_exclude(filter, sample->thread.pid, sample->thread.tid))
		return VERDICT_REFUSED;
	if (filter->names.length && !pid_is_listed(filter, sample->thread.pid)) {
		if (NEEDS_OF_NAMES & ~known)
			return VERDICT_OPEN;
		if (!process_matches(&filter->names, sample))
			return VERDICT_REFUSED;
	}
	return expression_eval(&filter->expression, sample, known);
}

enum verdict filter_eval(const struct filter *filter, const struct sample *sample, uint64_t known)
{
	enum verdict verdict;

	if (!filter_wants_state(filter, sample->now.state))
		return VERDICT_REFUSED;
	verdict = filter_eval_thread(filter, sample, known);
	if (verdict == VERDICT_REFUSED || sample->now.state != STATE_SLEEP ||
	    !filter_wants_work(filter))
		return verdict;
	if (!(known & NEED_WAIT_CLASS))
		return VERDICT_OPEN;
	return wait_class_works(sample->wait.why) ? verdict : VERDICT_REFUSED;
}

bool filter_accepts(const struct filter *filter, const struct sample *sample)
{
	return filter_eval(filter, sample, ~0ull) == VERDICT_ACCEPTED;
}

void filter_done(struct filter *filter)
{
	text_done(&filter->names);
	index_clear(&filter->pids);
	index_clear(&filter->tids);
	expression_done(&filter->expression);
	*filter = (struct filter){0};
}
