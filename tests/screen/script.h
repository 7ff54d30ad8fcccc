/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A screen without a terminal, on a recording, which scripts and the monkey drive. */
#ifndef TSNAP_TESTS_SCREEN_SCRIPT_H
#define TSNAP_TESTS_SCREEN_SCRIPT_H

#include "screen/cells.h"
#include "screen/history.h"
#include "screen/saved.h"
#include "screen/shown.h"
#include "screen/view.h"
#include "screen/view_event.h"

struct stage {
	struct history *history;
	struct view *view;
	struct shown shown;
	struct saved_views views;
	struct question answered;
	struct cells cells;
	size_t rows, columns;
	enum view_request asked; /* request of the last key that made one */
	bool quiet;		 /* writes no files */
};

/* Takes all of the recording into the history. Ends the program with a message on errors. */
void stage_open(struct stage *stage, const char *recording, const struct query *query);
/* Gives the view a key, and does what it requests. False: it requests the end. */
bool stage_key(struct stage *stage, int32_t key);
/* Gives the view a mouse event. */
void stage_mouse(struct stage *stage, const struct mouse *mouse);
/* Draws the screen. */
void stage_draw(struct stage *stage);
void stage_close(struct stage *stage);
/* True if all of the screen is printable, and each row as wide as the screen. */
bool cells_are_clean(const struct cells *cells);

#endif
