/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the names of -p are compared with, live and in a recording: the name of the thread, the file
 * name of the program, and the file name of the script that an interpreter runs.
 *
 * The kernel names a process that runs a script by its #! line after the script, but for
 * "python3 /opt/report.py" only the command line has it: it is the first argument that is neither
 * an option nor an option's value, unless an option gives the code itself (-c) or names a module
 * (-m).
 */
#ifndef TSNAP_SAMPLE_FILTER_PROCESS_NAME_H
#define TSNAP_SAMPLE_FILTER_PROCESS_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include "sample/needs.h"

#define NEEDS_OF_NAMES ((uint64_t)(NEED_COMM | NEED_EXE | NEED_CMDLINE)) /* comm, exe, cmdline */

/* True if the pattern (pattern_matches()) matches one of the three. Each may be NULL: not known.
 * cmdline: with spaces between its words. */
bool process_name_matches(const char *pattern, const char *comm, const char *exe,
			  const char *cmdline);

/* Finds the script's file name in a command line, and its length. NULL: the program is no
 * interpreter, or runs no script. */
const char *process_script(const char *cmdline, size_t *length);

#endif
