/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/sleepers.h"
#include "report/measure.h"
#include "sample/column.h"

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

void sleepers_take(struct sleepers *sleepers, const struct sample *sample)
{
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
}

void sleepers_done(struct sleepers *sleepers)
{
	group_table_done(&sleepers->groups);
	grid_done(&sleepers->grid);
	text_done(&sleepers->unmet);
	*sleepers = (struct sleepers){0};
}
