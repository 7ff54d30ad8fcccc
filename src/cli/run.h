/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A run: a report, rows, stacks or a recording. Read run.c first. */
#ifndef TSNAP_CLI_RUN_H
#define TSNAP_CLI_RUN_H

#include "base/error.h"
#include "base/text.h"
#include "cli/config.h"
#include "sample/filter/filter.h"
#include "sample/source.h"

/* Opens the source of the scans; its arguments must outlive the source. 0 or -errno with e. */
typedef int source_opener(const struct config *config, struct filter *filter, uint64_t needs,
			  struct source **source, struct error *e);

/* Samples as config says and writes reports or rows to standard output, until it is done or a
 * signal (INT, TERM, HUP) requests the end: then the samples so far are shown; a second signal ends
 * the process at once. tell gets lines for standard error, when they are known. 0; 1 if --when
 * found what it waits for; or -errno with e; if the reader has closed the pipe, the end is silent.
 */
int run(const struct config *config, source_opener *open_source, void (*tell)(const char *lines),
	struct error *e);

/* Runs as run() does, but adds its output to text. */
int run_into(struct text *text, const struct config *config, source_opener *open_source,
	     void (*tell)(const char *lines), struct error *e);

/* Writes to the file, completely or not at all; to standard output, if file is NULL or "-". 0,
 * -EPIPE if the reader has closed the pipe, or another -errno with e. */
int run_output(const char *file, const struct text *out, struct error *e);
/* Reports that a file with that content was written; nothing for standard output. */
void run_output_tell(const char *file, const char *what, void (*tell)(const char *lines));
/* Checks whether run_output() may work, so that no user waits in vain. */
int run_output_check(const char *file, struct error *e);

#define NOTHING_SAMPLED "stopped: nothing was sampled yet\n" /* by a signal, live */

#endif
