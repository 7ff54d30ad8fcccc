/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of functions of modules, which a parser looks for in files (file_service.h): slow at first.
 * To be used by one thread. */
#ifndef TSNAP_UNWIND_SYMBOLS_H
#define TSNAP_UNWIND_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/file_request.h"
#include "unwind/module_table.h"

struct symbols_cache {
	const char *proc_root;
	struct parser *parser;	 /* NULL: no name is known */
	uint64_t cut_count;	 /* files with more functions than are kept */
	uint64_t refused_count;	 /* processes whose map is another user's, or no file */
	uint64_t unloaded_count; /* tables given back for want of memory */
};

/* Fills name, printable for people, cut where it is long. False where the function is not known. */
bool symbols_name(struct symbols_cache *cache, struct module *module, uint64_t address,
		  char name[FUNCTION_NAME_SIZE]);
/* Has the parser forget a module that is closing. */
void symbols_cache_close(struct symbols_cache *cache, struct module *module);
/* Has the parser forget all modules, before their numbers are reused. */
void symbols_cache_done(struct symbols_cache *cache);

#endif
