/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The terminal, by ncursesw: the only file that draws on it. One thread uses it. */
#ifndef TSNAP_SCREEN_TERMINAL_H
#define TSNAP_SCREEN_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "screen/cells.h"

/* Takes the terminal over. 0, or -errno with e (an unknown TERM). From then on every way out of the
 * process restores it: also signals that end it, and out of memory. */
int terminal_open(struct error *e);
/* Restores the terminal as it was. */
void terminal_close(void);

/* The terminal's present size. */
void terminal_size(size_t *rows, size_t *columns);
/* Writes the cells that have changed since the last time; all: every cell. */
void terminal_show(const struct cells *cells, bool all);
/* The next key that has been typed (screen/key.h); -1: there is none, -2: the terminal is gone. */
int32_t terminal_key(void);
/* Reads the mouse event after KEY_CODE_MOUSE. False: an event that is not used. */
bool terminal_mouse(size_t *row, size_t *column, int *wheel);
/* Gives the terminal back while the job is in the background, and takes it again when it is back in
 * the foreground. False: tsnap is to end, and has the terminal no more. */
bool terminal_wait_front(void);
/* Stops the job as Ctrl-Z does, and returns as terminal_wait_front() does. */
bool terminal_stop(void);

#endif
