/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Failures as they are passed up to main: words for the user, and the exit code.
 *
 * Code below main neither prints nor exits. A function that can fail returns 0 or -errno and fills
 * one struct error, which the caller owns. error_done() may be called for a zeroed struct.
 */
#ifndef TSNAP_BASE_ERROR_H
#define TSNAP_BASE_ERROR_H

#include <stddef.h>

enum exit_code {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_FOUND = 3,	       /* what --when waited for was there: no failure */
	EXIT_HOST_CANNOT = 77, /* the host does not support it; the line has the reason */
};

#define ERROR_LINE_SIZE 1024

struct error {
	enum exit_code exit_code;
	char line[ERROR_LINE_SIZE]; /* one line: the failure, its reason, and a remedy */
	char *detail; /* further lines shown with -v (a compiler's or verifier's log) */
};

/* Fills e, replacing its content, and returns -err, so that `return error_set(...)` reads well. err
 * is a positive errno, which is not added to the words; if it is 0, -EIO is returned, as something
 * has failed. Line breaks in the words become spaces.
 */
int error_set(struct error *e, int err, enum exit_code code, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Takes over detail (malloced, or NULL), which replaces an earlier one. */
void error_take_detail(struct error *e, char *detail);

/* Adds words to the line, as far as they fit. */
void error_add(struct error *e, const char *words);

/* The exit code for a result (0 or -errno). A failure without words gets some, so that no failure
 * ends the program in silence, or as if it had succeeded. */
enum exit_code error_end(struct error *e, int result);

/* The errno whose words, as strerror(3) has them, others have put into theirs; 0: there are none.
 */
int error_of_words(const char *words);
/* Copies the line of output that names an error, and returns its errno as error_of_words() does:
 * the last one that has words of an errno, else the first with "error"; or "" and 0. */
int error_of_output(const char *output, char *line, size_t size);

void error_done(struct error *e);

#endif
