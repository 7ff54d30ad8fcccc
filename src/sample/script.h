/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The script that an interpreter runs.
 *
 * The kernel names a process that runs a script by its #! line after the script, but for
 * "python3 /opt/report.py" only the command line has it: it is the first argument that is neither
 * an option nor an option's value, unless an option gives the code itself (-c) or names a module
 * (-m).
 */
#ifndef TSNAP_SAMPLE_SCRIPT_H
#define TSNAP_SAMPLE_SCRIPT_H

#include <stddef.h>

/* Finds the script's file name in a command line that has spaces between its words, and its length.
 * NULL: the program is no interpreter, or runs no script. */
const char *process_script(const char *cmdline, size_t *length);

#endif
