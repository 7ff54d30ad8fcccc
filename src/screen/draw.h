/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Drawing: a screen of a view and what it shows. */
#ifndef TSNAP_SCREEN_DRAW_H
#define TSNAP_SCREEN_DRAW_H

#include "screen/cells.h"
#include "screen/shown.h"
#include "screen/view.h"

/* Minimum height of a screen in rows. */
#define SCREEN_ROWS_LEAST 15
#define SCREEN_COLUMNS_LEAST 60

/* Positions of the parts, in rows of the screen from 0. */
struct layout {
	size_t rows, columns;
	size_t band_top, band_rows; /* 0 rows: there is no band */
	size_t axis_row;	    /* row of the times, below the band */
	size_t steps_row;	    /* row of the steps that led to this view */
	size_t title_row, table_top, table_rows;
	size_t list_title, list_rows;	/* title of a list; its items are below it */
	size_t cell_top, cell_rows;	/* whole value of the cell under the cursor */
	size_t bottom_top, bottom_rows; /* message, prompt or keys */
};

/* Draws the screen. Of the view only its scroll offsets, its positions on the screen, and a cursor
 * below the last row are changed. cells: as large as the screen. */
void draw(struct cells *cells, struct view *view, const struct shown *shown);

/* Number of steps in the band of a screen that has so many columns. */
size_t draw_band_steps(size_t columns);

/* Parts of draw(): draw_head.c, draw_table.c, draw_list.c. */
void draw_head(struct cells *cells, const struct layout *layout, const struct view *view,
	       const struct shown *shown);
void draw_band(struct cells *cells, const struct layout *layout, const struct shown *shown);
void draw_table(struct cells *cells, const struct layout *layout, struct view *view,
		const struct shown *shown);
void draw_list(struct cells *cells, const struct layout *layout, struct view *view,
	       const struct shown *shown);
/* Writes the text into rows of the screen, broken where necessary. */
void draw_lines(struct cells *cells, size_t row, size_t rows, const char *text, enum style style);

#endif
