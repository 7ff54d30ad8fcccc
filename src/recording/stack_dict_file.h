/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes a dictionary of stacks (recording/stack_dict.h) beside rows: each stack once, as soon as
 * the source knows its functions, so that whatever ends tsnap the file holds what came before.
 */
#ifndef TSNAP_RECORDING_STACK_DICT_FILE_H
#define TSNAP_RECORDING_STACK_DICT_FILE_H

#include "base/error.h"
#include "base/index.h"
#include "base/text.h"
#include "report/grid.h"
#include "sample/source.h"

/* Zeroed is one that nobody asked for. */
struct stack_dict_file {
	const char *path;
	int fd;
	struct source *source;
	struct index written; /* hashes */
	struct column_list list;
	struct grid grid;
	struct text out;
	uint64_t refused; /* stacks beyond STACK_DICT_MAX */
};

/* Makes the file anew and has it take the source's stacks. path must outlive it; NULL: nothing is
 * written. 0, or -errno with e. */
int stack_dict_file_begin(struct stack_dict_file *file, const char *path, struct source *source,
			  struct error *e);
/* Writes what was taken. 0, or -errno with e. */
int stack_dict_file_flush(struct stack_dict_file *file, struct error *e);
/* Writes all stacks that the source has still to tell, too, and ends the file. */
int stack_dict_file_end(struct stack_dict_file *file, struct error *e);
void stack_dict_file_done(struct stack_dict_file *file);

#endif
