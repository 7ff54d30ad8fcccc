/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The one widget for lists: items under a title, of which typed words choose. A kind of list says
 * what its items are and what choosing one does.
 */
#ifndef TSNAP_SCREEN_LIST_H
#define TSNAP_SCREEN_LIST_H

#include "screen/cells.h"
#include "screen/shown.h"
#include "screen/view.h"

#define LIST_NAME_WIDTH 26 /* columns before what explains an item */

struct list_kind {
	const char *title;
	const char *hint; /* keys, and what they do here; shown in the last rows */
	size_t (*count)(const struct view *view, const struct shown *shown);
	/* Adds the item's name, and what explains it. */
	void (*item)(const struct view *view, const struct shown *shown, size_t item,
		     struct text *name, struct text *help);
	/* True if it is marked as chosen; NULL: none is. */
	bool (*marked)(const struct view *view, const struct shown *shown, size_t item);
	/* Enter; the list is closed before, unless it stays. */
	void (*choose)(struct view *view, const struct shown *shown, size_t item);
	bool stays;
	bool wide; /* items have no names, and take all of the width */
	bool half; /* it has the lower half of the table's place, else all of it */
	/* Fills what the items are read from, where that was not done yet for this answer; NULL:
	 * there is nothing to fill. */
	void (*fill)(struct shown *shown, const struct view *view);
	/* Adds to the title; NULL: nothing. */
	void (*header)(const struct view *view, const struct shown *shown, struct text *title);
	/* Draws above the items, one row; NULL: nothing. */
	void (*top)(struct cells *cells, const struct shown *shown, size_t row);
	/* Adds the line about the item under the cursor; NULL: what explains it. */
	void (*detail)(const struct view *view, const struct shown *shown, size_t item,
		       struct text *text);
	/* Column of an item's explanation that is under the cursor; NULL: the whole item is. */
	size_t (*cursor)(const struct view *view, const struct shown *shown);
	/* Another key on an item. False: the list does with it what it does with any; NULL: so with
	 * all. */
	bool (*key)(struct view *view, const struct shown *shown, size_t item, int32_t key);
};

extern const struct list_kind list_columns, list_sort, list_palette, list_help, list_views,
	list_formats, list_peek, list_tree, list_heat, list_value;

void list_open(struct view *view, const struct list_kind *kind);
/* Fills what the open list shows, if one is open; after each answer and key. */
void list_fill(struct shown *shown, const struct view *view);
/* Items that fit the typed words, and the one at a place among them; SIZE_MAX: there is none. */
size_t list_matches(const struct view *view, const struct shown *shown);
size_t list_item_at(const struct view *view, const struct shown *shown, size_t at);
/* Adds the whole of what explains the item under the cursor, which is moved to one that is there.
 */
void list_add_detail(struct text *text, struct view *view, const struct shown *shown);
/* A key while the list is open. */
void list_key(struct view *view, const struct shown *shown, int32_t key);

/* The ready-made view of that number, from 0; false: there is none. */
bool view_choose(struct view *view, const struct shown *shown, size_t number);

#endif
