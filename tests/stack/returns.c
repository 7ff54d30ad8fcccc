/* SPDX-License-Identifier: GPL-2.0-or-later */
/* returns FILE: reads `objdump -d FILE` and compares the returns that x86_return finds at each
 * instruction, if a thread is there, with FILE's unwind table. Ends with 1 if too many differ, 77
 * without a table; -v prints them. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "unwind/frame_source.h"
#include "unwind/x86_return.h"

#define SAVED 6
#define SKIPPED 77

/* Finds the return that the table has. False: it is not among those found. */
static bool return_find(const struct elf_file *elf, uint64_t address, const struct frame_rule *cfa,
			struct frame_row *row)
{
	struct x86_return returns[X86_RETURNS_MAX];
	size_t count = x86_returns_find(elf, address, true, returns);

	for (size_t i = 0; i < count; i++)
		if (returns[i].base == cfa->number && returns[i].offset == cfa->offset - 8)
			return x86_return_row(&returns[i], row);
	return false;
}

/* True if the register's rule equals the table's, or is unknown. */
static bool is_right(const struct frame_row *found, const struct frame_row *table, int i)
{
	const struct frame_rule *rule = &found->saved[i], *reported = &table->saved[i];

	switch (rule->kind) {
	case RULE_UNDEFINED:
		return true;
	case RULE_SAME:
		/* after a register was restored, a table may still have its place below the stack
		 * pointer */
		return reported->kind == RULE_SAME ||
		       (reported->kind == RULE_AT_CFA && reported->offset + table->cfa.offset < 0 &&
			table->cfa.number == machine_of(false)->sp);
	default:
		return reported->kind == rule->kind && reported->offset == rule->offset;
	}
}

static bool is_of_compilers(const struct frame_row *row)
{
	return row && !row->signal && row->cfa.kind == RULE_REGISTER &&
	       row->ra.kind == RULE_AT_CFA && row->ra.offset == -8;
}

/* Row of the table, or NULL. */
static const struct frame_row *row_of(struct frame_source *source, uint64_t address)
{
	static struct frame_operations operations;
	static struct frame_row row;

	operations.count = 0;
	return source && !frame_source_row(source, machine_of(false), &operations, address, &row)
		       ? &row
		       : NULL;
}

int main(int argc, char **argv)
{
	long count = 0, lost = 0, wrong = 0, unknown = 0;
	struct frame_source *source;
	struct elf_file elf;
	struct stat file;
	char line[1024];
	int fd = argc > 1 ? open(argv[1], O_RDONLY) : -1;

	if (fd < 0 || fstat(fd, &file) || elf_file_read(&elf, fd, NULL, (uint64_t)file.st_size))
		return 2;
	source = frame_source_open(&elf);
	while (fgets(line, sizeof(line), stdin)) {
		char *end;
		uint64_t address = strtoull(line, &end, 16);
		const struct frame_row *row = end[0] == ':' ? row_of(source, address) : NULL;
		struct frame_row found;
		bool right = true;

		if (!is_of_compilers(row))
			continue;
		count++;
		if (!return_find(&elf, address, &row->cfa, &found)) {
			lost++;
			continue;
		}
		for (int i = 0; i < SAVED; i++) {
			right = right && is_right(&found, row, i);
			unknown += found.saved[i].kind == RULE_UNDEFINED;
		}
		wrong += !right;
		if (!right && argc > 2)
			fputs(line, stdout);
	}
	frame_source_close(source);
	printf("%ld places, %ld not followed, %ld wrong, %ld registers unknown\n", count, lost,
	       wrong, unknown);
	if (!count)
		return SKIPPED;
	/* tables of gcc 16 and later have some registers in place that were saved, but not changed
	 * yet, or the other way round, where both are right: 2 of 100 */
	return lost > count / 5 || wrong > count / 40 || unknown > count / 50;
}
