/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Table of functions' begins and ends, in order of address; 16 bytes each. Names stay where they
 * come from: a symbol has only the location of its name there. */
#ifndef TSNAP_UNWIND_ELF_SYMBOL_TABLE_H
#define TSNAP_UNWIND_ELF_SYMBOL_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYMBOLS_MAX 1000000 /* symbols of one file; the rest is counted */
#define SYMBOL_SOURCES_MAX 4
#define SYMBOL_RANKS 16

struct symbol {
	uint64_t key;	/* address << 4 | rank */
	uint32_t bytes; /* size; 0: not known, up to the next symbol */
	uint32_t name;	/* source << 30 | location */
};

struct symbol_table {
	struct symbol *symbols;
	size_t count, capacity;
	uint64_t refused;
};

/* Adds a symbol. rank: of several symbols at one address the one with the lowest rank is kept; of
 * several with that rank the first, or (newest) the one with the last location. location: of the
 * name in the source, below 2^30. */
void symbol_add(struct symbol_table *table, uint64_t address, uint64_t bytes, unsigned int rank,
		unsigned int source, uint64_t location);
void symbol_table_sort(struct symbol_table *table, bool newest); /* call after all were added */
void symbol_table_done(struct symbol_table *table);

/* Returns the function that the address is in, or NULL. */
const struct symbol *symbol_find(const struct symbol_table *table, uint64_t address);

static inline uint64_t symbol_address(const struct symbol *symbol)
{
	return symbol->key / SYMBOL_RANKS;
}

static inline unsigned int symbol_source(const struct symbol *symbol)
{
	return symbol->name >> 30;
}

static inline uint32_t symbol_location(const struct symbol *symbol)
{
	return symbol->name & ((1u << 30) - 1);
}

#endif
