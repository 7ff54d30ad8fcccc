/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The column ufiles: which file each frame of a user stack is in. Its parts belong to the frames of
 * the column stack, outermost first, with ';' between:
 *
 *     PATH@BUILD-ID  the file's path as its process saw it, and its build-id in hexadecimal, which
 *                    is empty where the file has none; neither ';' nor control bytes
 *     -              in no file: made by a JIT, Python's, or not known
 *     (nothing)      as the frame before
 */
#ifndef TSNAP_SAMPLE_STACK_FILES_H
#define TSNAP_SAMPLE_STACK_FILES_H

#include <stddef.h>

/* { .at = the text } is before the first frame. */
struct stack_files {
	const char *at;	    /* NULL: behind the last frame, or there is no text */
	const char *file;   /* PATH@BUILD-ID of the present frame, within the text; NULL: in none */
	size_t length;	    /* length of all of file */
	size_t path_length; /* length of its path */
};

/* Goes on to the next frame. Behind the last one no frame has a file. */
void stack_files_next(struct stack_files *files);

#endif
