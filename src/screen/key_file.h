/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The keys that run commands: those of the command table, and those that a user's files give
 * instead:
 *
 *   peek = p F2
 *   quit = Q
 *
 * A command gets the keys of its line in place of its own. A key that another command had is taken
 * from that one. Keys inside of lists and lines that are typed can't be changed.
 */
#ifndef TSNAP_SCREEN_KEY_FILE_H
#define TSNAP_SCREEN_KEY_FILE_H

#include "base/error.h"
#include "screen/bindings.h"

/* Sets the keys of the command table. */
void bindings_begin(struct bindings *bindings);
/* Changes keys as the file says; a file that does not exist changes nothing. 0, or -errno with
 * e. */
int bindings_read(struct bindings *bindings, const char *path, struct error *e);

#endif
