/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Choice of the rows of a report that a terminal shows. Output to a pipe or a file is never cut. */
#ifndef TSNAP_RENDER_REPORT_ROWS_H
#define TSNAP_RENDER_REPORT_ROWS_H

#include "render/renderer.h"

/* The number of first rows that fit into the interval's height beside other_lines, without those
 * below half a per cent; all rows if the height is not known. */
size_t report_rows(const struct interval *interval, size_t other_lines);

/* Adds one line for the rows from `rows` on: "38 more rows, 6.1 %". */
void interval_add_rest(struct text *out, const struct interval *interval, size_t rows);

#endif
