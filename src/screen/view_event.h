/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events: what makes a new view of an old one. Pure: a view and what it shows go in, a view comes
 * out.
 */
#ifndef TSNAP_SCREEN_VIEW_EVENT_H
#define TSNAP_SCREEN_VIEW_EVENT_H

#include "screen/shown.h"
#include "screen/view.h"

/* key: enum key, or a character. shown: of this view. */
void view_key(struct view *view, const struct shown *shown, int32_t key);

/* A click, or a turn of the wheel, at a cell of the screen. */
struct mouse {
	size_t row, column;
	int wheel; /* -1: up, 1: down, 0: a click */
};

void view_mouse(struct view *view, const struct shown *shown, const struct mouse *mouse);

/* True if the question of one is another than that of the other, so that shown_fill() is due. */
bool question_differs(const struct question *a, const struct question *b);

#endif
