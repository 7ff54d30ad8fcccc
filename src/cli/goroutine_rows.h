/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --goroutines with --csv or --json: a row for each group of goroutines. */
#ifndef TSNAP_CLI_GOROUTINE_ROWS_H
#define TSNAP_CLI_GOROUTINE_ROWS_H

#include "base/error.h"
#include "config.h"

/* Writes the rows to standard output, and passes what was missed to complain. 0, or -errno with
 * e. */
int goroutine_rows_print(const struct config *config, void (*complain)(const char *line),
			 struct error *e);

#endif
