/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Contents of a screen, as cells in memory: everything is drawn here, and a terminal or a text gets
 * it from here. Only printable text gets in, whatever draws it. */
#ifndef TSNAP_SCREEN_CELLS_H
#define TSNAP_SCREEN_CELLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

#define CELL_BYTES 16 /* size of a character with its combining characters and the NUL */
#define CELLS_ROWS_MAX 500
#define CELLS_COLUMNS_MAX 1000

/* Look of a cell. The terminal's table of colours has a row for each. */
enum style {
	STYLE_PLAIN,
	STYLE_TITLE,  /* header lines */
	STYLE_FAINT,  /* hints and labels, as on every screen */
	STYLE_CURSOR, /* the row under the cursor */
	STYLE_CELL,   /* the cell under the cursor */
	STYLE_ALERT,  /* errors, and what was missed */
	STYLE_KEY,    /* names of keys */
	STYLE_ON,     /* states */
	STYLE_RQ,
	STYLE_DISK,
	STYLE_WORK,
	STYLE_MORE, /* numbers that grew between two windows */
	STYLE_LESS, /* numbers that shrank between two windows */
	STYLE_COUNT,
};

struct cell {
	char bytes[CELL_BYTES]; /* UTF-8; empty: second half of a wide character */
	uint8_t style;		/* enum style */
};

/* A zeroed struct is an empty screen. */
struct cells {
	struct cell *cells;
	size_t rows, columns, capacity;
	bool ascii; /* only ASCII gets in: other characters become a similar one, or ? */
};

/* Gives the screen that size, all blank. */
void cells_clear(struct cells *cells, size_t rows, size_t columns);
struct cell *cells_at(const struct cells *cells, size_t row, size_t column);
/* Writes the text from that cell on, clipped to `width` columns and to the screen. Returns the
 * number of columns used. What is not printable becomes ?. */
size_t cells_put(struct cells *cells, size_t row, size_t column, size_t width, const char *text,
		 enum style style);
/* Writes the text to the right end of the width; a text that is wider is cut, with a mark. */
void cells_put_right(struct cells *cells, size_t row, size_t column, size_t width, const char *text,
		     enum style style);
/* Writes the text to the left end of the width; a text that is wider is cut, with a mark. */
void cells_put_cut(struct cells *cells, size_t row, size_t column, size_t width, const char *text,
		   enum style style);
/* Gives a part of a row another style. */
void cells_style(struct cells *cells, size_t row, size_t column, size_t width, enum style style);
/* Adds all rows, a line each, without the blanks at their ends. */
void cells_text(const struct cells *cells, struct text *text);
void cells_done(struct cells *cells);

#endif
