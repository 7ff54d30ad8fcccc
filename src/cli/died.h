/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --died: the last minute of a process of a recording, by the incident that it ended with. */
#ifndef TSNAP_CLI_DIED_H
#define TSNAP_CLI_DIED_H

#include "cli/config.h"

/* Finds the process that died last in the recording, of those with that name or pid, and has the
 * replay show it alone, in the minute before, and the incident itself. Options that were given
 * stay: --from and --to, columns, a filter. 0, or -errno with e: there is none. */
int died_find(struct config *config, struct error *e);

#endif
