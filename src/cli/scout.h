/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Looks at all processes of the host through child processes that may be lost, and adds processes
 * that block the look to base/avoid.h. Called after one was met: there are often more.
 */
#ifndef TSNAP_CLI_SCOUT_H
#define TSNAP_CLI_SCOUT_H

#include <stddef.h>

/* Returns how many were added. Takes a third of a second, or longer if many are found. */
size_t scout_all(void);

#endif
