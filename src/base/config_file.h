/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of lines that a user writes: options, views and keys. Empty lines and lines that begin with
 * # are ignored.
 */
#ifndef TSNAP_BASE_CONFIG_FILE_H
#define TSNAP_BASE_CONFIG_FILE_H

#include "base/error.h"

/* Callback for a line without blanks at its ends, which it may change during the call. 0, or
 * -EINVAL with e. */
typedef int config_line_callback(void *to, char *line, struct error *e);

/* Calls take for each line that is not ignored; a missing file has no lines. A file that is not a
 * regular one, or that others may write to, is refused. 0, or -errno with e, which names the file
 * and the line. */
int config_file_read(const char *path, config_line_callback *take, void *to, struct error *e);
/* Cuts blanks off both ends. */
char *config_trim(char *words);

#endif
