/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The dictionary of stacks beside a recording: a CSV with a row for each stack, so that rows of
 * samples need just its hash. Its form, and what reads it; recording/stack_dict_file.h writes it.
 *
 * Dictionaries may follow each other in one file, each with its header line; of a hash that is
 * there twice the first row counts.
 */
#ifndef TSNAP_RECORDING_STACK_DICT_H
#define TSNAP_RECORDING_STACK_DICT_H

#include "base/error.h"
#include "sample/column.h"
#include "recording/csv_reader.h"

#define STACK_DICT_MAX (1u << 19) /* stacks */
#define STACK_DICT_USER "user"
#define STACK_DICT_KERNEL "kernel"

/* A row. Text is interned, or static. */
struct stack_entry {
	int64_t hash;
	const char *kind;	  /* STACK_DICT_USER or STACK_DICT_KERNEL */
	const char *func, *funcs; /* see the columns ufunc, ufuncs, kfunc and kfuncs */
	const char *frames;	  /* outermost first, ';' between: one half of the column stack */
	const char *files;	  /* see the column ufiles; NULL: a kernel stack */
};

/* Columns of the dictionary; offsets are into struct stack_entry. */
extern const struct column stack_dict_columns[];
extern const size_t stack_dict_column_count;

struct stack_dict;

/* Reads all of the file; needs: enum sample_needs, what they don't ask for is not kept. 0, or
 * -errno with e. */
int stack_dict_open(const char *path, uint64_t needs, struct stack_dict **dict, struct error *e);
/* As stack_dict_open(), of an input. If the input is empty *dict is NULL. */
int stack_dict_open_input(struct csv_input *input, const char *name, uint64_t needs,
			  struct stack_dict **dict, struct error *e);
void stack_dict_free(struct stack_dict *dict); /* also of NULL */

/* Fills the fields of the sample that its hashes tell, where they are absent. */
void stack_dict_fill(struct stack_dict *dict, struct sample *sample);
/* Hashes of samples that were not in it. */
uint64_t stack_dict_lacking(const struct stack_dict *dict);

#endif
