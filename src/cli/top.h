/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The full screen (--top): a source, the history that it fills, and the screen that shows it. */
#ifndef TSNAP_CLI_TOP_H
#define TSNAP_CLI_TOP_H

#include "run.h"

/* Shows the screen until it is ended. 0 or -errno with e; report: as for run(). */
int top(const struct config *config, source_opener *open_source, void (*report)(const char *lines),
	struct error *e);

#endif
