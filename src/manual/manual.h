/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The manual pages and the shell completions, written at build time from the tables of options,
 * columns, states, measures, kinds of trace and wait classes, and from prose in packaging/man.
 *
 * A separate program (main.c) links the tables; tsnap contains none of this.
 */
#ifndef TSNAP_MANUAL_MANUAL_H
#define TSNAP_MANUAL_MANUAL_H

#include "base/error.h"
#include "base/text.h"

/* Adds a page: the lines of prose, a file of man(7) macros, in which a line "@NAME" stands for
 * the table of that name and "@version" for tsnap's version. options: a file with more about
 * options, each part after a line "@option NAME". 0 or -errno with e: a file can't be read, or
 * names a table or an option that does not exist. */
int manual_page_add(struct text *page, const char *prose, const char *options, struct error *e);

/* Adds the completion script of bash, zsh or fish. 0, or -EINVAL with e for another shell. */
int completion_add(struct text *script, const char *shell, struct error *e);

#endif
