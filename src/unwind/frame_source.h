/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rows of a file's unwind table, made by libdw: in a parser only (file_service.c).
 * frame_source.c, or frame_source_none.c in a build without libdw. */
#ifndef TSNAP_UNWIND_FRAME_SOURCE_H
#define TSNAP_UNWIND_FRAME_SOURCE_H

#include <stddef.h>

#include "unwind/elf/elf_file.h"
#include "unwind/frame_row.h"

#define ROW_OPERATIONS_MAX 1024 /* operations of all expressions of a row */

/* Operations of rows' expressions; a rule's offset is that of its first one. */
struct frame_operations {
	struct frame_operation all[ROW_OPERATIONS_MAX];
	size_t count;
};

struct frame_source;

/* Reads a file's tables; what elf reads from is not needed afterwards. NULL: there are none. */
struct frame_source *frame_source_open(const struct elf_file *elf);
void frame_source_close(struct frame_source *source); /* source may be NULL */
size_t frame_source_bytes(const struct frame_source *source);
/* Fills *row, whose expressions are added to operations. Returns 0, or -ENOENT where the table has
 * no row. */
int frame_source_row(struct frame_source *source, const struct machine *machine,
		     struct frame_operations *operations, uint64_t address, struct frame_row *row);

#endif
