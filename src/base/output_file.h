/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files that are written whole or not at all. */
#ifndef TSNAP_BASE_OUTPUT_FILE_H
#define TSNAP_BASE_OUTPUT_FILE_H

#include <stddef.h>

/* Puts a file in the place of path at once: nobody ever sees half of it, and what was there stays
 * when this fails. What is no regular file (a device, a pipe) is written to. 0, or -errno. */
int output_replace(const char *path, const char *bytes, size_t length);
/* Whether that may work, as far as can be told before there is anything to write. */
int output_replace_check(const char *path);

#endif
