/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows for programs, as CSV and JSON: of samples, or of groups (--report), each with its interval.
 * In JSON an object precedes rows of groups; it has what the text form has in its header lines and
 * footer. */
#ifndef TSNAP_RENDER_RENDER_ROWS_H
#define TSNAP_RENDER_RENDER_ROWS_H

#include "render/renderer.h"

struct trace_kind;

/* Makes the end of each object of an interval: its begin and end, and the number of its scans. */
void grouped_json_end(struct text *row_end, const struct interval *interval);
/* Adds a text in quotes behind `before`, and a member of an object. */
void json_add_text(struct text *out, const char *before, const char *string);
void json_add_number(struct text *out, const char *name, int64_t number);
/* Adds what --list has, with these kinds of --trace, as an object each. */
void list_json_add(struct text *out, const struct trace_kind *const *kinds, size_t kind_count);

#endif
