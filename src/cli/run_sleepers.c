/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Contents of a report without samples: which of the requested threads sleep, or which parts of the
 * filter no thread meets. */
#include "cli/run_state.h"
#include "base/clock.h"

#include <errno.h>
#include <string.h>

#define COMM_MAX 15 /* TASK_COMM_LEN without the NUL */
#define LOOKS_MAX 5 /* limit of looks while some wait classes are not known */
#define LOOK_NS (20 * NS_PER_MS)

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
static void choices_find(struct choices *choices, const struct run *run)
{
	const struct config *config = run->config;
	struct error none = {0};
	struct choice *choice;

	if (config->live.process) {
		choice = choice_add(choices, "-p", config->live.process);
		choice->filter.by_pid = true;
		choice->filter.pids = run->filter.pids;
	}
	if (config->live.threads) {
		choice = choice_add(choices, "-t", config->live.threads);
		choice->filter.by_tid = true;
		choice->filter.tids = run->filter.tids;
	}
	if (config->user)
		filter_set_user(&choice_add(choices, "-u", config->user)->filter, config->user,
				true, &none);
	if (config->comm) {
		choice = choice_add(choices, "-c", config->comm);
		filter_set_pattern(&choice->filter, "comm", config->comm);
		choice->cut = pattern_least(config->comm) > COMM_MAX;
	}
	if (config->live.cgroup)
		filter_set_pattern(&choice_add(choices, "--cgroup", config->live.cgroup)->filter,
				   "cgroup", config->live.cgroup);
	if (config->filter)
		filter_set_expression(&choice_add(choices, "--filter", config->filter)->filter,
				      config->filter, &none);
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

static void sleeper_take(void *to, const struct sample *sample)
{
	sleepers_take(to, sample);
}

/* Finds the options that no thread meets, if no thread was found. */
static void unmet_find(struct run *run)
{
	struct filter all = {.all_states = true};
	struct choices choices = {0};

	choices_find(&choices, run);
	if (choices.count &&
	    !run->source->look(run->source, &all, choices.needs, choices_request, &choices))
		unmet_report(&choices, &run->sleepers.unmet);
	choices_done(&choices);
}

static int sleepers_look(struct run *run)
{
	struct filter filter = run->filter;
	int err;

	filter.all_states = true;
	filter.on_cpu = filter.off_cpu = filter.no_samples = false;
	sleepers_begin(&run->sleepers);
	run->sleepers.filtered = run_filters(run);
	err = run->source->look(run->source, &filter, sleepers_needs(&run->sleepers), sleeper_take,
				&run->sleepers);
	sleepers_end(&run->sleepers);
	return err;
}

void run_find_sleepers(struct run *run)
{
	int err = -ENOSYS;

	run->interval.sleepers = NULL;
	if (run->renderer != &renderer_report || run->grid.row_count || !run->source->look ||
	    !run->tally.scans)
		return;
	for (int looks = 1; looks <= LOOKS_MAX; looks++) {
		err = sleepers_look(run);
		if (err || !run->sleepers.unsettled ||
		    clock_sleep_until(clock_monotonic_ns() + LOOK_NS))
			break;
	}
	if (err)
		return;
	if (!run->sleepers.asleep && !run->sleepers.halted && !run->sleepers.active)
		unmet_find(run);
	run->interval.sleepers = &run->sleepers;
}
