/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/lock_symbols.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Takes "ffffffff82e0c1a0 d rtnl_mutex", after which modules have "\t[name]". */
static void symbol_take(struct lock_symbols *symbols, uint64_t address, char kind, const char *name)
{
	if (symbols->write && address > symbols->write &&
	    (!symbols->write_end || address < symbols->write_end))
		symbols->write_end = address;
	if (!strcmp(name, "percpu_rwsem_wake_function"))
		symbols->wake = address;
	else if (!strcmp(name, "percpu_down_write"))
		symbols->write = address;
	else if (!strcmp(name, "__per_cpu_offset"))
		symbols->cpu_offsets = address;
	if (!strchr("bBdD", kind))
		return;
	*index_put(&symbols->data, address, NULL) = symbols->names.length + 1;
	text_add(&symbols->names, name, strlen(name) + 1);
}

void lock_symbols_read(struct lock_symbols *symbols, const char *path)
{
	FILE *file;
	char *line = NULL, *end;
	size_t capacity = 0;

	if (symbols->read)
		return;
	symbols->read = true;
	file = fopen(path, "re");
	while (file && getline(&line, &capacity, file) > 0) {
		uint64_t address = strtoull(line, &end, 16);

		/* zero: sysctl kernel.kptr_restrict */
		if (!address || strlen(end) < 4)
			continue;
		end[3 + strcspn(end + 3, "\t\n ")] = 0;
		symbol_take(symbols, address, end[1], end + 3);
	}
	free(line);
	if (file)
		fclose(file);
}

const char *lock_symbol_find(const struct lock_symbols *symbols, uint64_t address)
{
	const uint64_t *at = index_find(&symbols->data, address);

	return at ? symbols->names.bytes + *at - 1 : NULL;
}

void lock_symbols_done(struct lock_symbols *symbols)
{
	index_clear(&symbols->data);
	text_done(&symbols->names);
	*symbols = (struct lock_symbols){0};
}
