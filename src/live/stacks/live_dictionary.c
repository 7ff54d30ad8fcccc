/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/stacks/live_dictionary.h"
#include "base/clock.h"
#include "base/memory.h"
#include "recording/stack_dict.h"

#define NAMES_LAST_NS (10 * NS_PER_SECOND) /* the end waits so long for names */

void live_dictionary_add(struct live_stacks *stacks, uint32_t number, int64_t uid)
{
	struct stack *stack = &stacks->table.stacks[number];

	if (!stacks->source->stack_take || stack->listed)
		return;
	stack->listed = true;
	stacks->listed = memory_grow(stacks->listed, &stacks->listed_capacity,
				     stacks->listed_count + 1, sizeof(*stacks->listed));
	stacks->listed[stacks->listed_count++] = (struct listed_stack){uid, number};
}

static bool stack_give(struct live_stacks *stacks, const struct listed_stack *listed, bool whatever)
{
	const uint32_t number = listed->number;
	struct stack_table *table = &stacks->table;
	const struct stack_words words = stack_table_words(table, number, true);
	const struct stack *stack = &table->stacks[number];
	const struct stack_entry entry = {
		.hash = live_stack_hash(stacks, number),
		.kind = stack->kernel ? STACK_DICT_KERNEL : STACK_DICT_USER,
		.func = words.function,
		.funcs = words.path,
		.frames = words.folded,
		.files = words.files,
		.uid = listed->uid,
	};

	if (!stack->reported && !whatever)
		return false;
	stacks->unnamed_count += !stack->reported;
	stacks->source->stack_take(stacks->source->stack_take_to, &entry);
	return true;
}

void live_dictionary_give(struct live_stacks *stacks, bool all)
{
	size_t kept = 0;

	for (size_t i = 0; i < stacks->listed_count; i++)
		if (!stack_give(stacks, &stacks->listed[i], all))
			stacks->listed[kept++] = stacks->listed[i];
	stacks->listed_count = kept;
}

void live_dictionary_anew(struct live_stacks *stacks)
{

	if (!stacks->needs)
		return;
	for (size_t i = 0; i < stacks->table.count; i++)
		stacks->table.stacks[i].listed = false;
	for (size_t i = 0; i < stacks->listed_count; i++)
		stacks->table.stacks[stacks->listed[i].number].listed = true;
}

void live_dictionary_end(struct live_stacks *stacks)
{
	int64_t until_ns = clock_monotonic_ns() + NAMES_LAST_NS;
	size_t before = SIZE_MAX;

	if (!stacks->needs)
		return;
	live_dictionary_give(stacks, false);
	/* only so many names are looked for at a time, those of the first stack among them */
	while (stacks->listed_count && stacks->listed_count < before &&
	       stack_names_wait(stacks->names, until_ns)) {
		before = stacks->listed_count;
		live_dictionary_give(stacks, false);
	}
	live_dictionary_give(stacks, true);
}
