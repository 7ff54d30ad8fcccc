/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/frame_table.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

void frame_table_init(struct frame_table *table, const struct elf_file *elf,
		      const struct machine *machine)
{
	*table = (struct frame_table){.elf = elf, .machine = machine};
}

void frame_table_shrink(struct frame_table *table)
{
	frame_source_close(table->source);
	table->source = NULL;
}

void frame_table_forget(struct frame_table *table)
{
	index_clear(&table->at);
	free(table->rows);
	free(table->operations);
	table->rows = NULL;
	table->operations = NULL;
	table->count = table->capacity = 0;
	table->operation_count = table->operation_capacity = 0;
}

void frame_table_done(struct frame_table *table)
{
	frame_table_shrink(table);
	frame_table_forget(table);
}

size_t frame_table_source_bytes(const struct frame_table *table)
{
	return table->source ? frame_source_bytes(table->source) : 0;
}

size_t frame_table_bytes(const struct frame_table *table)
{
	return table->capacity * sizeof(*table->rows) + table->at.capacity * 17 +
	       table->operation_capacity * sizeof(*table->operations);
}

static void row_make(struct frame_table *table, uint64_t address, struct frame_row *row)
{
	*row = (struct frame_row){.found = false};
	if (!table->source && !table->without) {
		table->source = frame_source_open(table->elf);
		table->without = !table->source;
	}
	if (table->without || frame_source_row(table->source, table, address, row))
		*row = (struct frame_row){.found = false};
}

struct frame_row *frame_table_other(struct frame_table *table, uint64_t address)
{
	uint64_t *position;
	bool added;

	position = index_put(&table->at, address, &added);
	if (added) {
		*position = table->count;
		table->rows = memory_grow(table->rows, &table->capacity, table->count + 1,
					  sizeof(*table->rows));
		row_make(table, address, &table->rows[table->count++]);
	}
	return &table->rows[*position];
}

const struct frame_row *frame_table_row(struct frame_table *table, uint64_t address)
{
	const struct frame_row *row = table->without ? NULL : frame_table_other(table, address);

	return row && row->found ? row : NULL;
}
