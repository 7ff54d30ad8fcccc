/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/frame_table.h"
#include "base/memory.h"
#include "unwind/file_request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TABLE_OPERATIONS_MAX 65536

void frame_table_init(struct frame_table *table, const struct elf_file *elf,
		      const struct machine *machine, struct parser *parser, uint32_t number)
{
	*table = (struct frame_table){
		.elf = elf, .machine = machine, .parser = parser, .number = number};
	table->without = !elf->bytes || !parser;
}

bool frame_table_is_read(const struct frame_table *table)
{
	return table->generation && table->generation == table->parser->generation;
}

void frame_table_shrink(struct frame_table *table)
{
	if (frame_table_read_bytes(table))
		file_drop(table->parser, table->number);
	table->generation = 0;
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

size_t frame_table_read_bytes(const struct frame_table *table)
{
	return frame_table_is_read(table) ? table->read_bytes : 0;
}

size_t frame_table_bytes(const struct frame_table *table)
{
	return table->capacity * sizeof(*table->rows) + table->at.capacity * 17 +
	       table->operation_capacity * sizeof(*table->operations);
}

bool frame_table_find(const struct frame_table *table, uint64_t address,
		      const struct frame_row **row)
{
	const uint64_t *position = table->without ? NULL : index_find(&table->at, address);
	const struct frame_row *found = position ? &table->rows[*position] : NULL;

	*row = found && found->found ? found : NULL;
	return table->without || (found && found->looked);
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
		table->rows[table->count++] = (struct frame_row){.found = false};
	}
	return &table->rows[*position];
}

/* Turns an expression's position in the answer into that in the table. False: the expression lies
 * outside of the answer. */
static bool rule_move(const struct frame_table *table, size_t operation_count,
		      struct frame_rule *rule)
{
	if (rule->kind > RULE_EXPRESSION)
		return false;
	if (rule->kind != RULE_AT && rule->kind != RULE_EXPRESSION)
		return true;
	if (!rule->count || rule->offset < 0 || (size_t)rule->offset > operation_count ||
	    rule->count > operation_count - (size_t)rule->offset)
		return false;
	rule->offset += (int32_t)table->operation_count;
	return true;
}

/* Takes a row from a parser's answer, which may say anything. */
static bool row_take(struct frame_table *table, const struct file_row *answer,
		     const struct frame_operation *operations, struct frame_row *row)
{
	size_t needed = table->operation_count + answer->operation_count;
	bool good = needed <= TABLE_OPERATIONS_MAX;

	*row = (struct frame_row){.looked = true,
				  .found = true,
				  .signal = answer->signal,
				  .cfa = answer->cfa,
				  .ra = answer->ra};
	memcpy(row->saved, answer->saved, sizeof(row->saved));
	good = good && rule_move(table, answer->operation_count, &row->cfa) &&
	       rule_move(table, answer->operation_count, &row->ra);
	for (size_t i = 0; i < MACHINE_SAVED_MAX; i++)
		good = good && rule_move(table, answer->operation_count, &row->saved[i]);
	if (!good || !answer->operation_count)
		return good;
	table->operations = memory_grow(table->operations, &table->operation_capacity, needed,
					sizeof(*table->operations));
	memcpy(table->operations + table->operation_count, operations,
	       answer->operation_count * sizeof(*operations));
	table->operation_count = needed;
	return true;
}

int frame_table_request(struct frame_table *table, uint64_t address)
{
	static struct file_row_answer answer;
	bool opens = !frame_table_is_read(table);
	struct frame_row row = {.looked = true}, *to;
	int err =
		file_row_request(table->parser, table->number, table->elf, opens, address, &answer);

	if (err == -EPIPE) {
		table->ended++;
		table->without = table->ended == FILE_ENDS_MAX;
		err = table->without ? -ENOENT : -EAGAIN;
	}
	if (err == -EAGAIN)
		return err;
	table->without = table->without || (err && err != -ENOENT);
	if (!err && opens) {
		table->generation = table->parser->generation;
		table->read_bytes = answer.head.table_bytes;
		table->without = answer.head.without;
	}
	if (err || !answer.head.found || !row_take(table, &answer.head, answer.operations, &row))
		row = (struct frame_row){.looked = true};
	to = frame_table_other(table, address);
	row.return_kind = to->return_kind;
	if (!err && answer.head.end <= STACK_ENDS)
		row.end = answer.head.end;
	*to = row;
	return 0;
}
