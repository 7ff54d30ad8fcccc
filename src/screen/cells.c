/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "screen/cells.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

/* ASCII characters that replace tsnap's own signs on a screen that has only ASCII. */
static const struct likeness {
	const char *sign;
	char ascii;
} likenesses[] = {
	{"…", '~'}, {"─", '-'}, {"│", '|'}, {"▏", '|'}, {"▸", '>'}, {"▾", 'v'},
	{"·", '.'}, {"█", '#'}, {"▁", '.'}, {"▂", '.'}, {"▃", ':'}, {"▄", ':'},
	{"▅", '+'}, {"▆", '+'}, {"▇", '#'}, {"›", '>'}, {"▲", '^'}, {"▼", 'v'},
	{"░", '.'}, {"▒", ':'}, {"▓", '#'}, {"✓", '*'}, {"▔", '-'}, {"═", '='},
};

void cells_clear(struct cells *cells, size_t rows, size_t columns)
{
	cells->rows = rows < CELLS_ROWS_MAX ? rows : CELLS_ROWS_MAX;
	cells->columns = columns < CELLS_COLUMNS_MAX ? columns : CELLS_COLUMNS_MAX;
	cells->cells = memory_grow(cells->cells, &cells->capacity, cells->rows * cells->columns,
				   sizeof(*cells->cells));
	for (size_t i = 0; i < cells->rows * cells->columns; i++)
		cells->cells[i] = (struct cell){.bytes = " "};
}

struct cell *cells_at(const struct cells *cells, size_t row, size_t column)
{
	return &cells->cells[row * cells->columns + column];
}

/* Length in bytes of the first character of the valid UTF-8 text. */
static size_t character_length(const char *text)
{
	unsigned char first = (unsigned char)*text;
	size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;

	return strnlen(text, length);
}

/* ASCII replacement of a character that is not ASCII. */
static char likeness_of(const char *character)
{
	for (size_t i = 0; i < sizeof(likenesses) / sizeof(likenesses[0]); i++)
		if (!strcmp(likenesses[i].sign, character))
			return likenesses[i].ascii;
	return '?';
}

/* Blanks the remaining half of a wide character whose other half is overwritten. */
static void halves_mend(struct cells *cells, size_t row, size_t column, size_t width)
{
	struct cell *first = cells_at(cells, row, column);

	if (!first->bytes[0] && column)
		text_into(first[-1].bytes, CELL_BYTES, " ");
	if (column + width < cells->columns && !first[width].bytes[0])
		text_into(first[width].bytes, CELL_BYTES, " ");
}

static void character_put(struct cells *cells, size_t row, size_t column, const char *character,
			  size_t width, enum style style)
{
	struct cell *cell = cells_at(cells, row, column);

	halves_mend(cells, row, column, width);
	for (size_t i = 0; i < width; i++)
		cell[i] = (struct cell){.style = (uint8_t)style};
	if (cells->ascii && (unsigned char)character[0] >= 0x80) {
		for (size_t i = 0; i < width; i++)
			cell[i].bytes[0] = likeness_of(character);
		return;
	}
	text_into(cell->bytes, CELL_BYTES, character);
}

/* Adds a character of width 0 to that of the cell. */
static void character_combine(struct cells *cells, struct cell *cell, const char *character)
{
	size_t length = strlen(cell->bytes);

	if (!cells->ascii && length + strlen(character) < CELL_BYTES)
		text_into(cell->bytes + length, CELL_BYTES - length, character);
}

/* The whole text as the gate lets it pass: what has passed already passes as it is, but for
 * backslashes, which are doubled by the gate and need no second pass. */
static bool is_printable(const char *text, struct text *gated)
{
	size_t slashes = 0;

	text_clear(gated);
	text_add_printable(gated, text);
	for (const char *at = text; *at; at++)
		slashes += *at == '\\';
	return gated->length == strlen(text) + slashes;
}

size_t cells_put(struct cells *cells, size_t row, size_t column, size_t width, const char *text,
		 enum style style)
{
	struct text gated = {0};
	struct cell *last = NULL;
	size_t from = column, end;

	if (row >= cells->rows || column >= cells->columns)
		return 0;
	end = width < cells->columns - column ? column + width : cells->columns;
	if (!is_printable(text, &gated))
		text = text_string(&gated);
	while (*text) {
		size_t length = character_length(text), wide;
		char character[8] = "";

		memcpy(character, text, length);
		text += length;
		wide = text_width(character);
		if (!wide && last)
			character_combine(cells, last, character);
		if (!wide)
			continue;
		if (column + wide > end)
			break;
		character_put(cells, row, column, character, wide, style);
		last = cells_at(cells, row, column);
		column += wide;
	}
	text_done(&gated);
	return column - from;
}

void cells_put_cut(struct cells *cells, size_t row, size_t column, size_t width, const char *text,
		   enum style style)
{
	size_t taken;

	if (!width)
		return;
	if (text_width(text) <= width) {
		cells_put(cells, row, column, width, text, style);
		return;
	}
	taken = cells_put(cells, row, column, width - 1, text, style);
	cells_put(cells, row, column + taken, 1, "…", style);
}

void cells_put_right(struct cells *cells, size_t row, size_t column, size_t width, const char *text,
		     enum style style)
{
	size_t taken = text_width(text);

	if (taken > width)
		cells_put_cut(cells, row, column, width, text, style);
	else
		cells_put(cells, row, column + width - taken, taken, text, style);
}

void cells_style(struct cells *cells, size_t row, size_t column, size_t width, enum style style)
{
	if (row >= cells->rows)
		return;
	for (size_t i = column; i < cells->columns && i - column < width; i++)
		cells_at(cells, row, i)->style = (uint8_t)style;
}

void cells_text(const struct cells *cells, struct text *text)
{
	for (size_t row = 0; row < cells->rows; row++) {
		size_t end = cells->columns;

		while (end && !strcmp(cells_at(cells, row, end - 1)->bytes, " "))
			end--;
		for (size_t column = 0; column < end; column++)
			text_add_string(text, cells_at(cells, row, column)->bytes);
		text_add_char(text, '\n');
	}
}

void cells_done(struct cells *cells)
{
	free(cells->cells);
	*cells = (struct cells){0};
}
