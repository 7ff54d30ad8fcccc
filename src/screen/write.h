/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes what is shown into a file (w), or as a command line (y). */
#ifndef TSNAP_SCREEN_WRITE_H
#define TSNAP_SCREEN_WRITE_H

#include "screen/cells.h"
#include "screen/shown.h"
#include "screen/view.h"

/* Writes the file according to view->write and view->path; an existing file is left alone. The
 * view's message reports the outcome. cells: the screen as it was drawn last. */
void write_view(struct view *view, const struct shown *shown, const struct cells *cells);

#endif
