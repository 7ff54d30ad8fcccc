/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that are written: whole or not at all, or as they grow. A link, device or FIFO that another
 * user has put into a sticky directory of everybody's (/tmp) is not followed or written to. */
#ifndef TSNAP_BASE_OUTPUT_FILE_H
#define TSNAP_BASE_OUTPUT_FILE_H

#include <errno.h>
#include <stddef.h>

#define OUTPUT_PLANTED EKEYREJECTED /* that is what it was */

/* Puts a file in the place of path at once: nobody ever sees half of it, and what was there stays
 * when this fails. A link stays one; what is no regular file (a device, a pipe) is written to. 0,
 * or -errno. */
int output_replace(const char *path, const char *bytes, size_t length);
/* Checks, before there is anything to write, whether output_replace() may work. 0, or -errno. */
int output_replace_check(const char *path);

/* Opens a file that grows, emptied. A descriptor, or -errno. */
int output_create(const char *path);

/* Words for an -errno of these functions. */
const char *output_error(int err);

#endif
