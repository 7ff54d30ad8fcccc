/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions for a build without libdw: no file has an unwind table, and walks follow frame
 * pointers. */
#include "unwind/frame_source.h"
#include "unwind/frame_step.h"

#include <errno.h>

struct frame_source *frame_source_open(const struct elf_file *elf)
{
	(void)elf;
	return NULL;
}

void frame_source_close(struct frame_source *source)
{
	(void)source;
}

size_t frame_source_bytes(const struct frame_source *source)
{
	(void)source;
	return 0;
}

int frame_source_row(struct frame_source *source, const struct machine *machine,
		     struct frame_operations *operations, uint64_t address, struct frame_row *row)
{
	(void)source;
	(void)machine;
	(void)operations;
	(void)address;
	(void)row;
	return -ENOENT;
}

int frame_step_row(const struct machine *machine, const struct frame_table *table,
		   const struct frame_row *row, struct thread_memory *memory,
		   struct user_registers *registers)
{
	(void)machine;
	(void)table;
	(void)row;
	(void)memory;
	(void)registers;
	return -EBADMSG;
}
