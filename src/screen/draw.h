/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Drawing: a screen of a view and what it shows. Pure, but for what fits: view_fit().
 */
#ifndef TSNAP_SCREEN_DRAW_H
#define TSNAP_SCREEN_DRAW_H

#include "screen/cells.h"
#include "screen/shown.h"
#include "screen/view.h"

/* Less is no screen. */
#define SCREEN_ROWS_LEAST 15
#define SCREEN_COLUMNS_LEAST 60

/* Positions of the parts: rows of the screen from 0. */
struct layout {
	size_t rows, columns;
	size_t band_top, band_rows; /* 0 rows: there is no band */
	size_t axis_row;	    /* times, below the band */
	size_t steps_row;	    /* the steps that led here */
	size_t title_row, table_top, table_rows;
	size_t list_title, list_rows;	/* title of a list; its items are below it */
	size_t cell_top, cell_rows;	/* the cell under the cursor, whole */
	size_t bottom_top, bottom_rows; /* message, prompt or keys */
};

/* Draws it. The view is changed only in what is scrolled into sight. cells: as large as the screen.
 */
void draw(struct cells *cells, struct view *view, const struct shown *shown);

/* Steps that the band has on a screen of so many columns. */
size_t draw_band_steps(size_t columns);

/* draw_head.c, draw_table.c, draw_list.c: parts of that. */
void draw_head(struct cells *cells, const struct layout *layout, const struct view *view,
	       const struct shown *shown);
void draw_band(struct cells *cells, const struct layout *layout, const struct shown *shown);
void draw_table(struct cells *cells, const struct layout *layout, struct view *view,
		const struct shown *shown);
void draw_list(struct cells *cells, const struct layout *layout, struct view *view,
	       const struct shown *shown);
/* Writes the text into rows of the screen, broken where it must be. */
void draw_lines(struct cells *cells, size_t row, size_t rows, const char *text, enum style style);

#endif
