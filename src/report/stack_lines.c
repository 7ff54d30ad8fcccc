/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/stack_lines.h"
#include "report/group_split.h"
#include "base/memory.h"
#include "sample/waker_stack.h"

#include <stdlib.h>
#include <string.h>

/* Columns after the keys, always present; found by name, as a key of the report may be one of
 * them. */
#define STACK_COLUMN "stack"
#define TIME_COLUMN "weight_us"

void stack_lines_init(struct stack_lines *lines, size_t most, const struct column_list *list,
		      bool wakers)
{
	struct error unsaid = {0};

	*lines = (struct stack_lines){.most = most, .wakers = wakers};
	if (!most)
		return;
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i]->role == ROLE_KEY)
			lines->list.items[lines->key_count++] = list->items[i];
	lines->list.count = lines->key_count;
	lines->list.wide = list->wide;
	column_list_add(&lines->list, STACK_COLUMN "," TIME_COLUMN, true, &unsaid);
	if (wakers)
		column_list_add(&lines->list, WAKER_COLUMNS, true, &unsaid);
	group_table_init(&lines->groups, &lines->list);
}

uint64_t stack_lines_needs(const void *state)
{
	const struct stack_lines *lines = state;

	return lines->most ? column_list_needs(&lines->list) : 0;
}

void stack_lines_add(void *state, const struct sample *sample, struct exact_note note)
{
	struct stack_lines *lines = state;

	if (!lines->most)
		return;
	lines->samples++;
	lines->known += sample->stack.both != NULL;
	group_table_add_noted(&lines->groups, sample, note);
}

static union value value_named(const struct stack_lines *lines, size_t stack, const char *name)
{
	size_t i = 0;

	while (strcmp(lines->list.items[i]->name, name))
		i++;
	return grid_row(&lines->grid, stack)[i];
}

const char *stack_line_frames(const struct stack_lines *lines, size_t stack)
{
	return value_named(lines, stack, STACK_COLUMN).text;
}

const char *stack_line_waker_stack(const struct stack_lines *lines, size_t stack)
{
	return lines->wakers ? value_named(lines, stack, "waker_stack").text : NULL;
}

const char *stack_line_waker_comm(const struct stack_lines *lines, size_t stack)
{
	return lines->wakers ? value_named(lines, stack, "waker_comm").text : NULL;
}

int64_t stack_line_weight_us(const struct stack_lines *lines, size_t stack)
{
	return value_named(lines, stack, TIME_COLUMN).number;
}

/* Hash of a line's keys. keys: values of the report's keys, in order. */
static uint64_t keys_hash(const struct stack_lines *lines, const union value *keys)
{
	return hash_bytes(keys, lines->key_count * sizeof(*keys));
}

static void line_keys(const struct stack_lines *lines, size_t line, union value *keys)
{
	const struct column_list *list = lines->of->list;

	for (size_t i = 0; i < list->count; i++)
		if (list->items[i]->role == ROLE_KEY)
			*keys++ = grid_row(lines->of, line)[i];
}

void stack_lines_fill(struct stack_lines *lines, const struct grid *report,
		      const struct tally *tally)
{
	if (!lines->most)
		return;
	lines->of = report;
	grid_fill_groups(&lines->grid, &lines->groups, tally);
	lines->next = memory_grow(lines->next, &lines->next_capacity, lines->grid.row_count,
				  sizeof(*lines->next));
	index_clear(&lines->first);
	/* rows from the last to the first: each is put before the others of its hash */
	for (size_t row = lines->grid.row_count; row-- > 0;) {
		uint64_t hash = keys_hash(lines, grid_row(&lines->grid, row));
		uint64_t *first = index_put(&lines->first, hash, NULL);

		lines->next[row] = (uint32_t)*first;
		*first = row + 1;
	}
}

size_t stack_lines_next(const struct stack_lines *lines, size_t line, size_t before)
{
	union value keys[COLUMN_LIST_MAX];
	const uint64_t *first;
	uint64_t row;

	line_keys(lines, line, keys);
	if (before == STACK_LINE_NONE) {
		first = index_find(&lines->first, keys_hash(lines, keys));
		row = first ? *first : 0;
	} else {
		row = lines->next[before];
	}
	for (; row; row = lines->next[row - 1])
		if (!memcmp(grid_row(&lines->grid, row - 1), keys,
			    lines->key_count * sizeof(*keys)))
			return row - 1;
	return STACK_LINE_NONE;
}

void stack_lines_clear(void *state)
{
	struct stack_lines *lines = state;

	if (!lines->most)
		return;
	group_table_clear(&lines->groups);
	lines->of = NULL;
	lines->samples = lines->known = 0;
}

void stack_lines_done(void *state)
{
	struct stack_lines *lines = state;

	group_table_done(&lines->groups);
	grid_done(&lines->grid);
	index_clear(&lines->first);
	free(lines->next);
	*lines = (struct stack_lines){0};
}
