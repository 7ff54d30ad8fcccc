/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/elf/symbol_table.h"
#include "base/memory.h"

#include <stdlib.h>

#define LOOKS_BACK 16 /* symbols tried for a function around one that is too short */

void symbol_add(struct symbol_table *table, uint64_t address, uint64_t bytes, unsigned int rank,
		unsigned int source, uint64_t location)
{
	if (table->count == SYMBOLS_MAX || location >> 30 || address >> 60) {
		table->refused++;
		return;
	}
	table->symbols = memory_grow(table->symbols, &table->capacity, table->count + 1,
				     sizeof(*table->symbols));
	table->symbols[table->count++] = (struct symbol){
		.key = address * SYMBOL_RANKS + (rank < SYMBOL_RANKS ? rank : SYMBOL_RANKS - 1),
		.bytes = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX,
		.name = (uint32_t)location | source << 30};
}

static int symbol_compare(const void *a, const void *b)
{
	const struct symbol *one = a, *other = b;

	if (one->key != other->key)
		return one->key < other->key ? -1 : 1;
	return (one->name > other->name) - (one->name < other->name);
}

void symbol_table_sort(struct symbol_table *table, bool newest)
{
	size_t kept = 0;

	if (!table->count)
		return;
	qsort(table->symbols, table->count, sizeof(*table->symbols), symbol_compare);
	for (size_t i = 1; i < table->count; i++)
		if (symbol_address(&table->symbols[i]) != symbol_address(&table->symbols[kept]))
			table->symbols[++kept] = table->symbols[i];
		else if (newest)
			table->symbols[kept] = table->symbols[i];
	table->count = kept + 1;
	table->capacity = table->count;
	table->symbols = memory_resize(table->symbols, table->count, sizeof(*table->symbols));
}

void symbol_table_done(struct symbol_table *table)
{
	free(table->symbols);
	*table = (struct symbol_table){.symbols = NULL};
}

const struct symbol *symbol_find(const struct symbol_table *table, uint64_t address)
{
	size_t low = 0, high = table->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbol_address(&table->symbols[middle]) <= address)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t back = 0; back < LOOKS_BACK && back < low; back++) {
		const struct symbol *symbol = &table->symbols[low - 1 - back];

		if ((!symbol->bytes && !back) || address - symbol_address(symbol) < symbol->bytes)
			return symbol;
	}
	return NULL;
}
