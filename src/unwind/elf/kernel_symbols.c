/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/elf/kernel_symbols.h"
#include "base/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAMES_BYTES_MAX (64u << 20)
#define LINE_BYTES 65536
#define FUNCTION_BYTES_MAX (256u << 10) /* after a module's last one there may be nothing */

static void symbol_add(struct kernel_symbols *symbols, uint64_t address, const char *name,
		       size_t length)
{
	if (symbols->count == KERNEL_SYMBOLS_MAX ||
	    symbols->names_bytes + length > NAMES_BYTES_MAX) {
		symbols->refused++;
		return;
	}
	symbols->symbols = memory_grow(symbols->symbols, &symbols->capacity, symbols->count + 1,
				       sizeof(*symbols->symbols));
	symbols->names = memory_grow(symbols->names, &symbols->names_capacity,
				     symbols->names_bytes + length + 1, 1);
	symbols->symbols[symbols->count++] =
		(struct kernel_symbol){address, (uint32_t)symbols->names_bytes};
	memcpy(symbols->names + symbols->names_bytes, name, length);
	symbols->names[symbols->names_bytes + length] = '\0';
	symbols->names_bytes += length + 1;
}

/* Takes the bounds of the section .sched.text, include/asm-generic/sections.h. */
static void bound_take(struct kernel_symbols *symbols, uint64_t address, const char *name)
{
	if (!strcmp(name, "__sched_text_start"))
		symbols->sched_from = address;
	else if (!strcmp(name, "__sched_text_end"))
		symbols->sched_to = address;
}

/* Takes a line: "ffffffff81000000 T name", and after a tab "[module]". */
static void line_take(struct kernel_symbols *symbols, const char *line)
{
	size_t length;
	char *at;
	uint64_t address = strtoull(line, &at, 16);

	/* text sections only; addresses are 0 for users who may not know them */
	if (!address || at[0] != ' ' || !at[1] || !strchr("tTwW", at[1]) || at[2] != ' ')
		return;
	length = strcspn(at + 3, " \t;");
	if (length)
		symbol_add(symbols, address, at + 3, length);
	bound_take(symbols, address, at + 3);
}

static int compare(const void *one, const void *other)
{
	const struct kernel_symbol *a = one, *b = other;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

/* Sorts symbols by address, and keeps the first name of each, as the kernel does. */
static void symbols_sort(struct kernel_symbols *symbols)
{
	size_t kept = 0;

	if (symbols->count)
		qsort(symbols->symbols, symbols->count, sizeof(*symbols->symbols), compare);
	for (size_t i = 0; i < symbols->count; i++)
		if (!kept || symbols->symbols[kept - 1].address != symbols->symbols[i].address)
			symbols->symbols[kept++] = symbols->symbols[i];
	symbols->count = kept;
}

static int lines_read(struct kernel_symbols *symbols, int fd)
{
	char *text = memory_get(LINE_BYTES);
	size_t held = 0;
	ssize_t got;

	while ((got = read(fd, text + held, LINE_BYTES - 1 - held)) > 0) {
		char *line = text, *end;

		held += (size_t)got;
		text[held] = '\0';
		while ((end = strchr(line, '\n'))) {
			*end = '\0';
			line_take(symbols, line);
			line = end + 1;
		}
		held -= (size_t)(line - text);
		memmove(text, line, held);
		if (held == LINE_BYTES - 1) /* no line of this file */
			break;
	}
	free(text);
	return got < 0 ? -errno : 0;
}

int kernel_symbols_read(struct kernel_symbols *symbols, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	*symbols = (struct kernel_symbols){.err = fd < 0 ? -errno : 0};
	if (fd < 0)
		return symbols->err;
	symbols->err = lines_read(symbols, fd);
	close(fd);
	symbols_sort(symbols);
	if (!symbols->err && !symbols->count)
		symbols->err = -ENODATA;
	return symbols->err;
}

void kernel_symbols_done(struct kernel_symbols *symbols)
{
	free(symbols->symbols);
	free(symbols->names);
	*symbols = (struct kernel_symbols){.count = 0};
}

const char *kernel_symbol_find(const struct kernel_symbols *symbols, uint64_t address)
{
	size_t low = 0, high = symbols->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbols->symbols[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address - symbols->symbols[low - 1].address > FUNCTION_BYTES_MAX)
		return NULL;
	return symbols->names + symbols->symbols[low - 1].name;
}
