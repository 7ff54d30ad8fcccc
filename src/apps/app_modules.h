/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The files that a process has mapped, and variables of them by their names. */
#ifndef TSNAP_APPS_APP_MODULES_H
#define TSNAP_APPS_APP_MODULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apps/app_program.h"
#include "base/cache.h"
#include "unwind/file_request.h"
#include "unwind/process_maps.h"

struct app_modules {
	struct mapping *files; /* the first mapping of each; path is owned */
	size_t count, capacity;
	size_t program; /* index of the program's own; SIZE_MAX: not found */
	bool (*is_marked)(const char *path);
	uint64_t marked; /* address of that mapping; 0: there is none */
	char program_path[4096];
};

/* Reads the list. is_marked: true of the path, as maps has it, of the mapping that is looked for.
 * False: it can't be read. The caller calls app_modules_done() either way. */
bool app_modules_read(struct app_modules *modules, bool (*is_marked)(const char *path),
		      const char *proc_root, int64_t pid, int64_t tid);
void app_modules_done(struct app_modules *modules);

/* What is known of variables of files, whatever processes have them mapped. */
#define APP_VARIABLES_MAX 8192
void app_variables_init(struct cache *variables);

/* Finds a variable of one of the files. name: stays at its address. exported: see
 * elf_variable_find(). *distance: of the file's addresses in the process. False: the file has no
 * such variable. */
bool app_variable_find(struct cache *variables, struct app_reader *reader,
		       const struct mapping *file, const char *name, bool exported,
		       struct elf_variable *variable, uint64_t *distance);

/* Length of the name of a mapped file, without what the kernel adds to that of one that is gone. */
size_t app_name_length(const char *name);

#endif
