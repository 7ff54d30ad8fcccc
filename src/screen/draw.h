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

/* Draws the screen. Of the view only its scroll offsets, its positions on the screen, and a cursor
 * below the last row are changed. cells: as large as the screen. */
void draw(struct cells *cells, struct view *view, const struct shown *shown);

/* Number of steps in the band of a screen that has so many columns. */
size_t draw_band_steps(size_t columns);

#endif
