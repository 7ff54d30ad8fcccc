/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/sleepers.h"
#include "base/clock.h"
#include "report/measure.h"
#include "sample/column.h"

#include <errno.h>
#include <string.h>

#define COMM_MAX 15 /* TASK_COMM_LEN without the NUL */
#define LOOKS_MAX 5 /* limit of looks while some wait classes are not known */
#define LOOK_NS (20 * NS_PER_MS)

/* Count of threads: one look has one sample of each thread. */
static const struct column threads_column = {"threads",
					     "THREADS",
					     "threads of the group",
					     KIND_NUMBER,
					     ROLE_MEASURE,
					     0,
					     7,
					     offsetof(struct measures, samples)};

static const char *const key_names[] = {"commsum", "syscall", "why"};

static void list_init(struct column_list *list)
{
	list->items[list->count++] = &threads_column;
	for (size_t i = 0; i < sizeof(key_names) / sizeof(key_names[0]); i++)
		list->items[list->count++] = sample_column_find(key_names[i]);
}

void sleepers_begin(struct sleepers *sleepers)
{
	struct group_table groups = sleepers->groups;
	struct grid grid = sleepers->grid;
	struct text unmet = sleepers->unmet;

	text_clear(&unmet);
	*sleepers = (struct sleepers){.groups = groups, .grid = grid, .unmet = unmet};
	list_init(&sleepers->list);
	if (!groups.slots)
		group_table_init(&sleepers->groups, &sleepers->list);
	group_table_clear(&sleepers->groups);
}

uint64_t sleepers_needs(const struct sleepers *sleepers)
{
	return column_list_needs(&sleepers->list);
}

void sleepers_take(void *to, const struct sample *sample)
{
	struct sleepers *sleepers = to;
	const struct state_row *state = state_row(sample->now.state);

	if (!state || state->active) {
		sleepers->active++;
		return;
	}
	if (sample->now.state == STATE_STOPPED || sample->now.state == STATE_ZOMBIE) {
		sleepers->halted++;
		return;
	}
	sleepers->asleep++;
	if (sample->thread.kthread == 1) {
		sleepers->kernel_asleep++;
		return;
	}
	sleepers->unsettled += sample->call.name && !sample->wait.why;
	group_table_add(&sleepers->groups, sample);
}

void sleepers_end(struct sleepers *sleepers)
{
	struct tally tally = {.scans = 1, .samples = sleepers->asleep - sleepers->kernel_asleep};

	grid_fill_groups(&sleepers->grid, &sleepers->groups, &tally);
	sleepers->known = true;
}

/* An option that selects threads; met: it selects a thread by itself. */
struct choice {
	const char *option, *argument;
	struct filter filter;
	bool met, cut; /* cut: longer than any name is */
};

#define CHOICES_MAX 6

struct choices {
	struct choice items[CHOICES_MAX];
	size_t count;
	uint64_t needs;
};

static struct choice *choice_add(struct choices *choices, const char *option, const char *argument)
{
	struct choice *choice = &choices->items[choices->count++];

	*choice = (struct choice){.option = option, .argument = argument};
	return choice;
}

/* Least number of bytes that a text must have to match the pattern, if it has no sets ([]). */
static size_t pattern_least(const char *pattern)
{
	size_t least = strlen(pattern);

	for (const char *at = pattern; *at; at++)
		least -= *at == '*';
	return strchr(pattern, '[') ? 0 : least;
}

/* Finds the options that select threads. They were parsed before, so there are no errors. Ids stay
 * those of the run's filter. */
static void choices_find(struct choices *choices, const struct query *query,
			 const struct filter *filter)
{
	struct error none = {0};
	struct choice *choice;

	if (query->process) {
		choice = choice_add(choices, "-p", query->process);
		choice->filter.by_pid = true;
		choice->filter.pids = filter->pids;
	}
	if (query->threads) {
		choice = choice_add(choices, "-t", query->threads);
		choice->filter.by_tid = true;
		choice->filter.tids = filter->tids;
	}
	if (query->user)
		filter_set_user(&choice_add(choices, "-u", query->user)->filter, query->user, true,
				&none);
	if (query->comm) {
		choice = choice_add(choices, "-c", query->comm);
		filter_set_pattern(&choice->filter, "comm", query->comm);
		choice->cut = pattern_least(query->comm) > COMM_MAX;
	}
	if (query->cgroup)
		filter_set_pattern(&choice_add(choices, "--cgroup", query->cgroup)->filter,
				   "cgroup", query->cgroup);
	if (query->filter)
		filter_set_expression(&choice_add(choices, "--filter", query->filter)->filter,
				      query->filter, &none);
	for (size_t i = 0; i < choices->count; i++)
		choices->needs |= choices->items[i].filter.expression.needs;
	error_done(&none);
}

static void choices_done(struct choices *choices)
{
	for (size_t i = 0; i < choices->count; i++) {
		choices->items[i].filter.pids = (struct index){0};
		choices->items[i].filter.tids = (struct index){0};
		filter_done(&choices->items[i].filter);
	}
}

static void choices_request(void *to, const struct sample *sample)
{
	struct choices *choices = to;

	for (size_t i = 0; i < choices->count; i++) {
		struct choice *choice = &choices->items[i];

		choice->met |=
			filter_eval_thread(&choice->filter, sample, ~0ull) == VERDICT_ACCEPTED;
	}
}

/* Adds "there is no thread for -c nobody, nor --cgroup /none". */
static void unmet_report(const struct choices *choices, struct text *to)
{
	for (size_t i = 0; i < choices->count; i++) {
		const struct choice *choice = &choices->items[i];

		if (choice->met)
			continue;
		text_add_format(to, "%s %s ", to->length ? ", nor" : "there is no thread for",
				choice->option);
		text_add_printable(to, choice->argument);
		if (choice->cut)
			text_add_format(to, " (the kernel cuts names at %d bytes)", COMM_MAX);
	}
	if (to->length)
		text_add_string(to, ". ps -eLo comm,user,pid,tid,cgroup lists those there are.");
}

/* Finds the options that no thread meets, if no thread was found. */
static void unmet_find(struct sleepers *sleepers, const struct report *report)
{
	struct filter all = {.all_states = true};
	struct choices choices = {0};

	choices_find(&choices, &report->query, &report->filter);
	if (choices.count && !report->source->host->look(report->source, &all, choices.needs,
							 choices_request, &choices))
		unmet_report(&choices, &sleepers->unmet);
	choices_done(&choices);
}

static int sleepers_look(struct sleepers *sleepers, const struct report *report)
{
	struct filter filter = report->filter;
	int err;

	filter.all_states = true;
	filter.on_cpu = filter.off_cpu = filter.no_samples = false;
	sleepers_begin(sleepers);
	sleepers->filtered = query_selects(&report->query);
	err = report->source->host->look(report->source, &filter, sleepers_needs(sleepers),
					 sleepers_take, sleepers);
	sleepers_end(sleepers);
	return err;
}

void sleepers_find(void *state, struct report *report)
{
	struct sleepers *sleepers = state;
	int err = -ENOSYS;

	sleepers->known = false;
	if (report->rows->row_count || !report->source->host || !report->tally.scans)
		return;
	for (int looks = 1; looks <= LOOKS_MAX; looks++) {
		err = sleepers_look(sleepers, report);
		if (err || !sleepers->unsettled ||
		    clock_sleep_until(clock_monotonic_ns() + LOOK_NS))
			break;
	}
	sleepers->known = !err;
	if (!err && !sleepers->asleep && !sleepers->halted && !sleepers->active)
		unmet_find(sleepers, report);
}

void sleepers_done(void *state)
{
	struct sleepers *sleepers = state;

	group_table_done(&sleepers->groups);
	grid_done(&sleepers->grid);
	text_done(&sleepers->unmet);
	*sleepers = (struct sleepers){0};
}
