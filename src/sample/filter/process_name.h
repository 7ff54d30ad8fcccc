/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the names of -p are compared with, live and in a recording: the name of the thread, the file
 * name of the program, and that of the script that an interpreter runs (sample/script.h).
 */
#ifndef TSNAP_SAMPLE_FILTER_PROCESS_NAME_H
#define TSNAP_SAMPLE_FILTER_PROCESS_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include "sample/needs.h"

#define NEEDS_OF_NAMES ((uint64_t)(NEED_COMM | NEED_EXE | NEED_SCRIPT)) /* comm, exe, script */

/* True if the pattern (pattern_matches()) matches one of the three. Each may be NULL: not known. */
bool process_name_matches(const char *pattern, const char *comm, const char *exe,
			  const char *script);

#endif
