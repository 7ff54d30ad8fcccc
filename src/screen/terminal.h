/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The terminal, by ncursesw: the only file that knows it. One thread uses it, except for
 * terminal_rescue(). */
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
/* Restores the terminal in a hurry, from a signal handler or another thread, without waiting for
 * the terminal. */
void terminal_rescue(void);

/* The terminal's present size. */
void terminal_size(size_t *rows, size_t *columns);
/* Writes the cells that have changed since the last time; all: every cell. */
void terminal_show(const struct cells *cells, bool all);
/* The next key that has been typed (screen/key.h); -1: there is none, -2: the terminal is gone. */
int32_t terminal_key(void);
/* Reads the mouse event after KEY_CODE_MOUSE. False: an event that is not used. */
bool terminal_mouse(size_t *row, size_t *column, int *wheel);
/* Stops the process as a job of the shell, and returns when it is continued. */
void terminal_stop(void);

#endif
