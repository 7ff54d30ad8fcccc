/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The one widget for lists: items under a title, narrowed by typed words. A kind of list says what
 * its items are and what choosing one does. */
#ifndef TSNAP_SCREEN_LIST_H
#define TSNAP_SCREEN_LIST_H

#include "screen/cells.h"
#include "screen/shown.h"
#include "screen/view.h"

#define LIST_NAME_WIDTH 26 /* width of an item's name, before its explanation */

struct list_kind {
	const char *title;
	const char *hint; /* keys and what they do in this list; shown in the last rows */
	size_t (*count)(const struct view *view, const struct shown *shown);
	/* Adds the item's name and its explanation. */
	void (*item)(const struct view *view, const struct shown *shown, size_t item,
		     struct text *name, struct text *help);
	/* True if the item is marked as chosen; NULL: no item is ever marked. */
	bool (*marked)(const struct view *view, const struct shown *shown, size_t item);
	/* Handles Enter; the list is closed before, unless the kind keeps it open. */
	void (*choose)(struct view *view, const struct shown *shown, size_t item);
	bool stays;
	/* Keys do what they do at the table, as far as that is not about its cell, and / begins the
	 * search. False: letters search at once. */
	bool keys;
	bool wide; /* items have no names, and take the whole width */
	bool half; /* list takes the lower half of the table's rows, else all of them */
	/* Fills the data that the items are read from, if that was not done yet for this answer;
	 * NULL: none to fill. */
	void (*fill)(struct shown *shown, const struct view *view);
	/* Adds to the title; NULL: nothing to add. */
	void (*header)(const struct view *view, const struct shown *shown, struct text *title);
	/* Draws one row above the items; NULL: none. */
	void (*top)(struct cells *cells, const struct shown *shown, size_t row);
	/* Adds the line about the item under the cursor; NULL: the item's explanation. */
	void (*detail)(const struct view *view, const struct shown *shown, size_t item,
		       struct text *text);
	/* Column within an item's explanation that is under the cursor; NULL: the whole item is. */
	size_t (*cursor)(const struct view *view, const struct shown *shown);
	/* Handles another key on an item. False: the list handles the key as usual; NULL: all keys
	 * as usual. */
	bool (*key)(struct view *view, const struct shown *shown, size_t item, int32_t key);
};

void list_open(struct view *view, const struct list_kind *kind);
/* Fills the data of the open list, if one is open; called after each answer and key. */
void list_fill(struct shown *shown, const struct view *view);
/* Number of items that match the typed words, and the item at an index among these; SIZE_MAX:
 * none. */
size_t list_matches(const struct view *view, const struct shown *shown);
size_t list_item_at(const struct view *view, const struct shown *shown, size_t at);
/* Adds the whole explanation of the item under the cursor, which is moved to an existing item. */
void list_add_detail(struct text *text, struct view *view, const struct shown *shown);
/* Handles a key while the list is open. */
void list_key(struct view *view, const struct shown *shown, int32_t key);

#endif
