/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/stacks/live_dictionary.h"
#include "live/live_state.h"
#include "base/clock.h"
#include "base/memory.h"
#include "recording/stack_dict.h"

#define NAMES_LAST_NS (10 * NS_PER_SECOND) /* that the end waits for names */

void live_dictionary_add(struct live *live, uint32_t number)
{
	struct live_stacks *stacks = &live->stacks;
	struct stack *stack = &stacks->table.stacks[number];

	if (!live->source.stack_take || stack->listed)
		return;
	stack->listed = true;
	stacks->listed = memory_grow(stacks->listed, &stacks->listed_capacity,
				     stacks->listed_count + 1, sizeof(*stacks->listed));
	stacks->listed[stacks->listed_count++] = number;
}

static bool stack_give(struct live *live, uint32_t number, bool whatever)
{
	struct stack_table *table = &live->stacks.table;
	const struct stack_words words = stack_table_words(table, number, true);
	const struct stack *stack = &table->stacks[number];
	const struct stack_entry entry = {
		.hash = live_stack_hash(&live->stacks, number),
		.kind = stack->kernel ? STACK_DICT_KERNEL : STACK_DICT_USER,
		.func = words.function,
		.funcs = words.path,
		.frames = words.folded,
	};

	if (!stack->told && !whatever)
		return false;
	live->stacks.unnamed_count += !stack->told;
	live->source.stack_take(live->source.stack_taker, &entry);
	return true;
}

void live_dictionary_give(struct live *live, bool all)
{
	struct live_stacks *stacks = &live->stacks;
	size_t kept = 0;

	for (size_t i = 0; i < stacks->listed_count; i++)
		if (!stack_give(live, stacks->listed[i], all))
			stacks->listed[kept++] = stacks->listed[i];
	stacks->listed_count = kept;
}

void live_dictionary_anew(struct source *source)
{
	struct live *live = (struct live *)source;
	struct live_stacks *stacks = &live->stacks;

	if (!stacks->needs)
		return;
	for (size_t i = 0; i < stacks->table.count; i++)
		stacks->table.stacks[i].listed = false;
	for (size_t i = 0; i < stacks->listed_count; i++)
		stacks->table.stacks[stacks->listed[i]].listed = true;
}

void live_dictionary_end(struct source *source)
{
	struct live *live = (struct live *)source;
	int64_t until_ns = clock_monotonic_ns() + NAMES_LAST_NS;
	size_t before = SIZE_MAX;

	if (!live->stacks.needs)
		return;
	live_dictionary_give(live, false);
	/* only so many names are looked for at a time, those of the first stack among them */
	while (live->stacks.listed_count && live->stacks.listed_count < before &&
	       stack_names_wait(live->stacks.names, until_ns)) {
		before = live->stacks.listed_count;
		live_dictionary_give(live, false);
	}
	live_dictionary_give(live, true);
}
