/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Choice of the rows of a report that a terminal shows. Output to a pipe or a file is never cut. */
#ifndef TSNAP_RENDER_PAGE_ROWS_H
#define TSNAP_RENDER_PAGE_ROWS_H

#include "render/renderer.h"

/* The number of first rows that fit into the page's height beside other_lines, without those below
 * half a per cent; all where the page has no height. */
size_t page_rows(const struct page *page, size_t other_lines);

/* Adds one line for the rows from `rows` on: "38 more rows, 6.1 %". */
void page_add_rest(struct text *out, const struct page *page, size_t rows);

#endif
