/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The terminal, by ncursesw: the one file that knows it. One thread uses it, but for
 * terminal_rescue().
 */
#ifndef TSNAP_SCREEN_TERMINAL_H
#define TSNAP_SCREEN_TERMINAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "screen/cells.h"

/* Takes the terminal over. 0, or -errno with e (an unknown TERM). From then on every way out of the
 * process gives it back: signals that end it, out of memory. */
int terminal_open(struct error *e);
/* Gives it back as it was. */
void terminal_close(void);
/* Gives it back in a hurry, from a signal handler or another thread, without waiting for the
 * terminal. */
void terminal_rescue(void);

/* The terminal's present size. */
void terminal_size(size_t *rows, size_t *columns);
/* Writes the cells that have changed since the last time; all: every cell. */
void terminal_show(const struct cells *cells, bool all);
/* The next key that has been typed (screen/key.h); -1: there is none, -2: the terminal is gone. */
int32_t terminal_key(void);
/* Reads what the mouse did, behind KEY_CODE_MOUSE. False: nothing that matters. */
bool terminal_mouse(size_t *row, size_t *column, int *wheel);
/* Stops the process as a job of the shell, and comes back when it is continued. */
void terminal_stop(void);

#endif
