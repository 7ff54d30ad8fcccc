/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that are written: whole or not at all, or as they grow. A link, device or FIFO that another
 * user has put into a sticky directory of everybody's (/tmp) is not followed or written to. */
#ifndef TSNAP_BASE_OUTPUT_FILE_H
#define TSNAP_BASE_OUTPUT_FILE_H

#include <errno.h>
#include <stddef.h>
#include <sys/types.h>

#define OUTPUT_PLANTED EKEYREJECTED /* the file was planted by another user */

/* Puts a file in the place of path at once: nobody ever sees half of it, and what was there stays
 * when this fails. A link stays one; what is no regular file (a device, a pipe) is written to. 0,
 * or -errno. */
int output_replace(const char *path, const char *bytes, size_t length);
/* Checks, before there is anything to write, whether output_replace() may work. 0, or -errno. */
int output_replace_check(const char *path);

/* Begins a file that is written piece by piece and then put in the place of path, as
 * output_replace() does. mode: its permissions where it is new, less the umask. NULL with -errno in
 * *err. */
struct output_file;
struct output_file *output_begin(const char *path, mode_t mode, int *err);
int output_descriptor(const struct output_file *file);
/* Puts it in its place, or, where err tells that something failed, takes it away. Frees it. err, or
 * -errno. */
int output_end(struct output_file *file, int err);

/* Opens a file that grows, emptied. A descriptor, or -errno. */
int output_create(const char *path);

/* Opens a directory in which files are written, and makes it if it is not there. A descriptor, or
 * -errno. */
int output_directory(const char *path, mode_t mode);

/* Words for an -errno of these functions. */
const char *output_error(int err);

#endif
