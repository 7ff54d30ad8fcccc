/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The column ufiles: the file of each frame of a user stack. Its parts belong to the frames of
 * the column stack, outermost first, with ';' between:
 *
 *     PATH@BUILD-ID  the file's path as its process saw it, and its build-id in hexadecimal, which
 *                    is empty if the file has none; neither ';' nor control bytes
 *     -              in no file: made by a JIT, Python's, or not known
 *     (nothing)      as the frame before
 */
#ifndef TSNAP_SAMPLE_STACK_FILES_H
#define TSNAP_SAMPLE_STACK_FILES_H

#include <stddef.h>

/* Iterator over the frames of a text. { .at = the text } is before the first frame. */
struct stack_files {
	const char *at;	    /* NULL: after the last frame, or there is no text */
	const char *file;   /* PATH@BUILD-ID of the present frame, in the text; NULL: no file */
	size_t length;	    /* length of all of file */
	size_t path_length; /* length of the path in file */
};

/* Goes on to the next frame. After the last one no frame has a file. */
void stack_files_next(struct stack_files *files);

#endif
