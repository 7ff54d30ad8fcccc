/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Views with a name: tsnap's own, and those of files.
 *
 * A file has sections, each a view:
 *
 *   [pg]
 *   help = what postgres waits for
 *   columns = comm,syscall,waits_on
 *   filter = comm~"^postgres"
 *   all = yes
 *
 * columns as for -g, filter as for --filter; all but columns may be missing. Empty lines and those
 * that begin with # are skipped. A view replaces one with the same name.
 */
#ifndef TSNAP_SCREEN_SAVED_H
#define TSNAP_SCREEN_SAVED_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/text.h"

struct shown;
struct view;

/* Texts are allocated by malloc(), except those of tsnap's own views. */
struct saved_view {
	const char *name, *help, *columns, *filter;
	bool all_states;
	/* column that reports are sorted by, of a view for reports alone: the history of a screen
	 * does not keep it; NULL: a view for both */
	const char *sort;
};

/* tsnap's own view of that name (--view); NULL with a usage error, which has the names of all. */
const struct saved_view *saved_view_find(const char *name, struct error *e);

struct saved_views {
	struct saved_view *items;
	size_t count, capacity;
	char **lines; /* lines of files, which the texts of views point into */
	size_t line_count, line_capacity;
};

/* Fills tsnap's own views. */
void saved_views_begin(struct saved_views *views);
/* Adds the views of the file; a file that does not exist has none. 0, or -errno with e, which names
 * the line. */
int saved_views_read(struct saved_views *views, const char *path, struct error *e);
void saved_views_done(struct saved_views *views);

/* Adds the view as a section of such a file. */
void saved_view_add(struct text *text, const struct view *view, const char *name);

/* Shows that view, as a step with the label "WORD NAME"; false: its filter is too long. */
bool saved_view_show(struct view *view, const struct shown *shown, const struct saved_view *saved,
		     const char *word);
/* Chooses the ready-made view of that number, from 0; false: there is none. */
bool view_choose(struct view *view, const struct shown *shown, size_t number);

#endif
