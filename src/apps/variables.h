/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Variables of programs that the user names (sample/program_variable.h): where they are in a
 * process, and what they have. */
#ifndef TSNAP_APPS_VARIABLES_H
#define TSNAP_APPS_VARIABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "apps/app_modules.h"
#include "apps/app_program.h"
#include "apps/tls.h"
#include "sample/program_variable.h"

struct variable_place {
	bool found;
	uint64_t address; /* 0: it is thread-local */
	uint64_t bytes;	  /* of the symbol; 0: not known */
	struct tls_place place;
};

/* What was found of a variable in all processes so far. */
struct variable_seen {
	bool found, has_module;
	char path[256];			   /* of a file without the symbol */
	char nearest[VARIABLE_NAME_BYTES]; /* its variable with the name most like that */
};

/* Finds the variables among the files of a process. Returns whether there is any. */
bool variables_find(struct app_reader *reader, const struct app_modules *modules,
		    struct cache *known, struct variable_place places[PROGRAM_VARIABLES_MAX],
		    struct variable_seen seen[PROGRAM_VARIABLES_MAX]);
/* Reads them for the thread with that pointer; those that can't be read stay absent. */
void variables_fill(struct app_reader *reader, const struct variable_place *places,
		    uint64_t pointer, struct sample_app *facts);
/* Adds what the variable lacks, "variable of --context, request: no process that was sampled has
 * mapped a file 'libx.so'". False: nothing. */
bool variable_lacks(size_t number, const struct variable_seen *seen, struct text *words);

#endif
