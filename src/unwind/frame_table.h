/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The unwind table of one file, which a parser reads (file_service.h). Rows are kept here once they
 * were requested; the parser keeps the table's own bytes as long as there is memory for them.
 */
#ifndef TSNAP_UNWIND_FRAME_TABLE_H
#define TSNAP_UNWIND_FRAME_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "parser/parser.h"
#include "unwind/elf/elf_file.h"
#include "unwind/frame_source.h"

struct frame_table {
	const struct elf_file *elf; /* headers of the file, not owned */
	const struct machine *machine;
	struct parser *parser; /* reader of the table, not owned; NULL: none */
	uint32_t number;       /* number that the parser knows the file by */
	uint64_t generation;   /* generation of the parser that has read the file; 0: none has */
	size_t read_bytes;     /* bytes that the parser holds of the file */
	unsigned int ended;    /* parsers that ended over it */
	bool without;	       /* the file has no table, or a bad one */
	struct index at;       /* address to position in rows */
	struct frame_row *rows;
	size_t count, capacity;
	struct frame_operation *operations;
	size_t operation_count, operation_capacity;
};

/* Makes an empty table. parser: may be NULL: the file counts as one without a table. */
void frame_table_init(struct frame_table *table, const struct elf_file *elf,
		      const struct machine *machine, struct parser *parser, uint32_t number);
void frame_table_done(struct frame_table *table);
/* Has the parser forget the file, and keeps the rows. */
void frame_table_shrink(struct frame_table *table);
/* Forgets the rows. */
void frame_table_forget(struct frame_table *table);
/* Return the memory that the parser holds of the file's bytes; the memory that rows take here. */
size_t frame_table_read_bytes(const struct frame_table *table);
size_t frame_table_bytes(const struct frame_table *table);

/* True if the parser knows the file. */
bool frame_table_is_read(const struct frame_table *table);

/* True: it is known what the table has for that address (as the file has addresses). *row is the
 * row, or NULL where it has none. Valid until the next call. */
bool frame_table_find(const struct frame_table *table, uint64_t address,
		      const struct frame_row **row);
/* Requests a row from the parser. Returns 0, or -EAGAIN: the row can't be known now. */
int frame_table_request(struct frame_table *table, uint64_t address);

/* Returns the row at an address that the table has none for, for the caller to fill; a new one is
 * zeroed. Valid until the next call. */
struct frame_row *frame_table_other(struct frame_table *table, uint64_t address);

#endif
