/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The dictionary of stacks beside a recording: a CSV with a row for each stack, so that rows of
 * samples need just its hash. This module has the format and the reader;
 * recording/stack_dict_file.h writes it.
 *
 * One file may have several dictionaries, each with its header line. If a hash is there twice, the
 * first row counts.
 */
#ifndef TSNAP_RECORDING_STACK_DICT_H
#define TSNAP_RECORDING_STACK_DICT_H

#include "base/error.h"
#include "sample/column.h"
#include "recording/csv_reader.h"

#define STACK_DICT_MAX (1u << 19) /* limit of stacks */
#define STACK_DICT_USER "user"
#define STACK_DICT_KERNEL "kernel"

/* A row of the dictionary. Text is interned, or static. */
struct stack_entry {
	int64_t hash;
	const char *kind;	  /* STACK_DICT_USER or STACK_DICT_KERNEL */
	const char *func, *funcs; /* see the columns ufunc, ufuncs, kfunc and kfuncs */
	const char *frames; /* outermost first, separated by ';': one half of the column stack */
	const char *files;  /* see the column ufiles; NULL: a kernel stack */
};

/* Columns of the dictionary; offsets are into struct stack_entry. */
extern const struct column stack_dict_columns[];
extern const size_t stack_dict_column_count;

struct stack_dict;

/* Reads all of the file; needs: NEED_*; text that they do not include is not kept. 0, or
 * -errno with e. */
int stack_dict_open(const char *path, uint64_t needs, struct stack_dict **dict, struct error *e);
/* Does stack_dict_open() for an input. If the input is empty, *dict is NULL. */
int stack_dict_open_input(struct csv_input *input, const char *name, uint64_t needs,
			  struct stack_dict **dict, struct error *e);
void stack_dict_free(struct stack_dict *dict); /* NULL is fine */

/* Fills absent fields of the sample from the stacks of its hashes. */
void stack_dict_fill(struct stack_dict *dict, struct sample *sample);
/* Number of hashes of samples that were not in the dictionary. */
uint64_t stack_dict_lacking(const struct stack_dict *dict);

#endif
