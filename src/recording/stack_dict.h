/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The dictionary of stacks beside a recording: a CSV with a row for each stack, so that rows of
 * samples need just its hash.
 *
 * One file may have several dictionaries, each with its header line. If a hash is there twice, the
 * first row counts. Programs make as many stacks as they like, so that there is a limit of what is
 * written, with a share for each user, and one of what is read, which is above it.
 */
#ifndef TSNAP_RECORDING_STACK_DICT_H
#define TSNAP_RECORDING_STACK_DICT_H

#include "base/error.h"
#include "base/index.h"
#include "base/text.h"
#include "recording/csv_reader.h"
#include "sample/source.h"

#define STACK_DICT_WRITTEN_BYTES (128u << 20) /* of a dictionary, or of a part of a recording */
#define STACK_DICT_READ_BYTES (256u << 20)
#define STACK_DICT_HEADER "hash,kind,func,funcs,frames,files"
#define STACK_DICT_USER "user"
#define STACK_DICT_KERNEL "kernel"

/* A row of the dictionary. Text is interned, or static. */
struct stack_entry {
	int64_t hash;
	const char *kind;	  /* STACK_DICT_USER or STACK_DICT_KERNEL */
	const char *func, *funcs; /* see the columns ufunc, ufuncs, kfunc and kfuncs */
	const char *frames; /* outermost first, separated by ';': one half of the column stack */
	const char *files;  /* see the column ufiles; NULL: a kernel stack */
	int64_t uid; /* user of the thread that had it first, or ABSENT; not in the dictionary */
};

/* Adds a row of the columns of the header line. */
void stack_dict_row_add(struct text *rows, const struct stack_entry *entry);

/* The stacks that are in a dictionary, by their writer. A zeroed struct has none. */
struct stack_dict_written {
	struct index hashes;
	struct index bytes_by_uid;
	size_t bytes;
	uint64_t refused; /* stacks beyond the limit; remains when the others are cleared */
};

/* True if the stack is to be written: it is new, and there is space for it. A user may have as many
 * bytes as are left: one alone gets half of all, and however many he makes, others get theirs. */
bool stack_dict_written_add(struct stack_dict_written *written, const struct stack_entry *entry);
/* Begins another dictionary. */
void stack_dict_written_clear(struct stack_dict_written *written);

struct stack_dict;

/* Reads all of the file; needs: NEED_*; text that they do not include is not kept. 0, or
 * -errno with e. */
int stack_dict_open(const char *path, uint64_t needs, struct stack_dict **dict, struct error *e);
/* Does stack_dict_open() for an input, of a recording: rows that can't be read are skipped and
 * counted. If the input is empty, *dict is NULL. */
int stack_dict_open_input(struct csv_input *input, const char *name, uint64_t needs,
			  struct stack_dict **dict, struct error *e);
void stack_dict_free(struct stack_dict *dict); /* NULL is fine */

/* Fills absent fields of the sample from the stacks of its hashes. */
void stack_dict_fill(struct stack_dict *dict, struct sample *sample);
/* Adds the numbers of stacks that were lacking, that can't be read, and beyond the limit. */
void stack_dict_describe(const struct stack_dict *dict, struct source_status *status);

/* Writes a dictionary beside rows: each stack once, as soon as the source knows its functions, so
 * that, whatever ends tsnap, the file has the stacks until then. A zeroed struct is disabled. */
struct stack_dict_file {
	const char *path;
	int fd;
	struct source *source;
	struct stack_dict_written written; /* also of a recording's present part */
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
