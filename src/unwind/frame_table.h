/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The unwind table of one file, read through libdw: rows are kept as they are asked for, the
 * table's own bytes only as long as there is room for them (frame_table_bytes()).
 */
#ifndef TSNAP_UNWIND_FRAME_TABLE_H
#define TSNAP_UNWIND_FRAME_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "unwind/elf/elf_file.h"
#include "unwind/frame_row.h"

struct frame_source; /* what libdw needs to make rows */

struct frame_table {
	const struct elf_file *elf; /* not owned */
	const struct machine *machine;
	struct frame_source *source; /* NULL: not read, or there is no table */
	bool without;		     /* the file has no table, or a bad one */
	struct index at;	     /* address to position in rows */
	struct frame_row *rows;
	size_t count, capacity;
	struct frame_operation *operations;
	size_t operation_count, operation_capacity;
};

void frame_table_init(struct frame_table *table, const struct elf_file *elf,
		      const struct machine *machine);
void frame_table_done(struct frame_table *table);
/* Gives the file's bytes back, and keeps the rows. */
void frame_table_shrink(struct frame_table *table);
/* Forgets the rows, and keeps the bytes. */
void frame_table_forget(struct frame_table *table);
/* Memory held by the file's bytes; by rows. */
size_t frame_table_source_bytes(const struct frame_table *table);
size_t frame_table_bytes(const struct frame_table *table);

/* The row of that address (as the file has addresses). NULL: the table tells nothing of it. Valid
 * until the next call. */
const struct frame_row *frame_table_row(struct frame_table *table, uint64_t address);

/* Of a place that the table tells nothing of: what was put there. Room for it, valid until the next
 * call. */
struct frame_row *frame_table_other(struct frame_table *table, uint64_t address);

/* frame_source.c, or frame_source_none.c in a build without libdw. */
struct frame_source *frame_source_open(const struct elf_file *elf);
void frame_source_close(struct frame_source *source);
size_t frame_source_bytes(const struct frame_source *source);
/* Fills *row, whose expressions go into table. 0, or -ENOENT where the table does not tell. */
int frame_source_row(struct frame_source *source, struct frame_table *table, uint64_t address,
		     struct frame_row *row);

#endif
