/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The screen on a terminal, in a thread of its own: the sampling thread never waits for a terminal,
 * not even for one that is stopped. The two share the history, which has a lock of its own, and
 * what screen_describe() copies.
 *
 * The thread draws into cells, and gives ncurses those that have changed. It takes the signals of a
 * terminal itself (SIGWINCH, SIGTSTP); others stay with the main thread.
 */
#ifndef TSNAP_SCREEN_SCREEN_H
#define TSNAP_SCREEN_SCREEN_H

#include <stdbool.h>

#include "base/error.h"
#include "screen/history.h"
#include "screen/shown.h"
#include "screen/view.h"

struct screen;

/* Checks that standard input and output are a terminal that a screen can be shown on. 0, or -ENOTTY
 * with a usage error that names an alternative. */
int screen_check(struct error *e);

/* Takes the terminal over and starts the thread, which uses history and view until the screen is
 * closed. ascii: only ASCII is written. 0 or -errno with e. */
int screen_open(struct screen **screen, struct history *history, struct view *view, bool ascii,
		struct error *e);
/* Passes on what is reported of the source from now on; its texts must be valid until the screen is
 * closed. */
void screen_describe(struct screen *screen, const struct shown_source *reported);
/* Needs to be sampled besides those of the command line, as in struct shown_source. */
struct screen_wish {
	uint64_t needs;
	bool all_states, traces;
};
/* True if there is a new wish since the last call. */
bool screen_wants(struct screen *screen, struct screen_wish *wish);
/* Returns question_is_of_threads() of what is shown. */
bool screen_is_of_threads(const struct screen *screen);
/* True if the user has ended the screen. */
bool screen_ended(const struct screen *screen);
/* Ends the thread and restores the terminal. */
void screen_close(struct screen *screen);

#endif
