/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes a dictionary of stacks (recording/stack_dict.h) beside rows: each stack once, as soon as
 * the source knows its functions, so that, whatever ends tsnap, the file has the stacks until then.
 */
#ifndef TSNAP_RECORDING_STACK_DICT_FILE_H
#define TSNAP_RECORDING_STACK_DICT_FILE_H

#include "base/error.h"
#include "base/text.h"
#include "recording/stack_dict.h"
#include "report/grid.h"
#include "sample/source.h"

/* A zeroed struct is disabled. */
struct stack_dict_file {
	const char *path;
	int fd;
	struct source *source;
	struct stack_dict_written written; /* also of a recording's present part */
	struct column_list list;
	struct grid grid;
	struct text out;
};

/* Creates or truncates the file and takes the source's stacks from now on. path must outlive it;
 * NULL: nothing is written. 0, or -errno with e. */
int stack_dict_file_begin(struct stack_dict_file *file, const char *path, struct source *source,
			  struct error *e);
/* Writes the stacks that were taken. 0, or -errno with e. */
int stack_dict_file_flush(struct stack_dict_file *file, struct error *e);
/* Writes the stacks that the source has not delivered yet, too, and ends the file. */
int stack_dict_file_end(struct stack_dict_file *file, struct error *e);
void stack_dict_file_done(struct stack_dict_file *file);

#endif
