/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parts of reports for machines (--report), for render_csv.c and render_json.c. */
#ifndef TSNAP_RENDER_RENDER_GROUPED_H
#define TSNAP_RENDER_RENDER_GROUPED_H

#include "render/render_cells.h"
#include "render/renderer.h"

/* Adds the first line of CSV: the columns, and those of each row's interval. */
void grouped_csv_begin(struct text *out, const struct column_list *list);
/* Makes the end of each row of an interval: begin and end of the interval, and the number of its
 * scans. */
void grouped_csv_end(struct text *row_end, const struct interval *interval);
void grouped_json_end(struct text *row_end, const struct interval *interval);
/* Adds an object with what is known of the host and the interval. */
void grouped_json_head(struct text *out, const struct interval *interval);
/* Adds a text in quotes behind `before`, and a member of an object. */
void json_add_text(struct text *out, const char *before, const char *string);
void json_add_number(struct text *out, const char *name, int64_t number);

#endif
