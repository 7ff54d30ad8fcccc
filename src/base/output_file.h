/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes files: whole or not at all, or piece by piece. A link, device or FIFO that another user
 * has put into a world-writable sticky directory (/tmp) is not followed or written to. */
#ifndef TSNAP_BASE_OUTPUT_FILE_H
#define TSNAP_BASE_OUTPUT_FILE_H

#include <errno.h>
#include <stddef.h>
#include <sys/types.h>

#define OUTPUT_PLANTED EKEYREJECTED /* the file was planted by another user */

/* Replaces the file at path at once: no reader ever sees half of it, and the old file stays if this
 * fails. A link stays a link; a file that is not regular (a device, a pipe) is written to. 0, or
 * -errno. */
int output_replace(const char *path, const char *bytes, size_t length);
/* Checks, before there is anything to write, whether output_replace() may work. 0, or -errno. */
int output_replace_check(const char *path);

/* Begins a file that is written piece by piece and then replaces path, as output_replace() does.
 * mode: permissions of a new file, less the umask. NULL with -errno in *err. */
struct output_file;
struct output_file *output_begin(const char *path, mode_t mode, int *err);
int output_descriptor(const struct output_file *file);
/* Puts the file in its place, or removes it if err says that something failed. Frees file. Returns
 * err, or -errno. */
int output_end(struct output_file *file, int err);

/* Opens a file that grows, and empties it. Returns a descriptor, or -errno. */
int output_create(const char *path);

/* Opens a directory in which files are written, and makes it if it does not exist. Returns a
 * descriptor, or -errno. */
int output_directory(const char *path, mode_t mode);

/* Words for an -errno of these functions. */
const char *output_error(int err);

#endif
