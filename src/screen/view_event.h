/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events make a new view of an old one. They change only the view, given what it shows. */
#ifndef TSNAP_SCREEN_VIEW_EVENT_H
#define TSNAP_SCREEN_VIEW_EVENT_H

#include "screen/shown.h"
#include "screen/view.h"

/* Handles a key. key: enum key, or a character. shown: answer of this view. */
void view_key(struct view *view, const struct shown *shown, int32_t key);

/* A mouse event at a cell of the screen: a click, or a turn of the wheel. */
struct mouse {
	size_t row, column;
	int wheel; /* -1: up, 1: down, 0: a click */
};

void view_mouse(struct view *view, const struct shown *shown, const struct mouse *mouse);

#endif
