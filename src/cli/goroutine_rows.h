/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --goroutines and --tasks: as text, and with --csv or --json a row for each group. */
#ifndef TSNAP_CLI_GOROUTINE_ROWS_H
#define TSNAP_CLI_GOROUTINE_ROWS_H

#include "base/error.h"
#include "config.h"
#include "live/live_goroutines.h"

/* Reads the goroutines or tasks that are asked for, with arguments and the result of
 * live_goroutines(). */
int routines_read(const struct config *config, routine_callback *take, void *to, struct text *out,
		  struct error *e);

/* Writes the rows to standard output, and passes what was missed to complain. 0, or -errno with
 * e. */
int routine_rows_print(const struct config *config, void (*complain)(const char *line),
		       struct error *e);

#endif
