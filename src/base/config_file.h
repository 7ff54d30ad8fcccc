/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of lines that a user writes: options, views and keys. Empty lines and those that begin with
 * # say nothing.
 */
#ifndef TSNAP_BASE_CONFIG_FILE_H
#define TSNAP_BASE_CONFIG_FILE_H

#include "base/error.h"

/* Takes a line without blanks at its ends, which is the callback's to change for the time of the
 * call. 0, or -EINVAL with e. */
typedef int config_line_callback(void *to, char *line, struct error *e);

/* Hands over the lines that say something; a file that is not there has none. 0, or -errno with e,
 * which tells the file and the line. */
int config_file_read(const char *path, config_line_callback *take, void *to, struct error *e);
/* Cuts blanks off both ends. */
char *config_trim(char *words);

#endif
