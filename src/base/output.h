/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes to a descriptor that may be a pipe, a terminal or a full disk. */
#ifndef TSNAP_BASE_OUTPUT_H
#define TSNAP_BASE_OUTPUT_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>

#define OUTPUT_UNREAD ETIME /* the reader did not take all in time after SIGTERM */

/* Writes whole lines. 0 if all was written, else -errno (EPIPE: the reader has gone); a file then
 * ends with its last whole line. Signals don't end it, but after SIGTERM the reader has one second
 * for each report, and five seconds in all; then -OUTPUT_UNREAD is returned. */
int output_write(int fd, const char *bytes, size_t length);

/* True if so many bytes can be written at once; false: the write may have to wait for the
 * reader. */
bool output_is_ready(int fd, size_t length);

/* Prints each line of words on standard error, after "tsnap: ", and made printable, as it may quote
 * foreign text. */
void output_complain(const char *words);

#endif
