/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of functions of modules, looked for in files: slow at first. One thread's. */
#ifndef TSNAP_UNWIND_SYMBOLS_H
#define TSNAP_UNWIND_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/elf/elf_symbols.h"
#include "unwind/module_table.h"
#include "unwind/elf/perf_map.h"

#define FUNCTION_NAME_SIZE 512

struct symbols {
	struct module *module;
	struct elf_symbols elf;
	struct perf_map map;
	bool loaded;
	bool cut;     /* there were more functions than are kept */
	bool refused; /* the map of a JIT's functions was not believed */
	int64_t used;
	struct symbols *next; /* of all that are loaded */
};

struct symbols_cache {
	const char *proc_root;
	struct symbols *first;
	int64_t uses;
	size_t bytes_max;
	uint64_t cut_count;	 /* files with more functions than are kept */
	uint64_t refused_count;	 /* processes whose map is another user's, or no file */
	uint64_t unloaded_count; /* tables given back for want of room */
};

/* Fills name, printable for people, cut where it is long; false where the function is not known. */
bool symbols_name(struct symbols_cache *cache, struct module *module, uint64_t address,
		  char name[FUNCTION_NAME_SIZE]);
/* What the folded form puts between frames must not be in them, nor what ends a line. */
void function_name_clean(char *name);
/* Closes what was opened for modules that are closing. */
void symbols_cache_close(struct symbols_cache *cache);
void symbols_cache_done(struct symbols_cache *cache);

#endif
