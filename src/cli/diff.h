/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --diff: a flame graph of how two runs differ. */
#ifndef TSNAP_CLI_DIFF_H
#define TSNAP_CLI_DIFF_H

#include "base/error.h"
#include "cli/config.h"
#include "cli/run.h"

/* Each of config's two files is folded stacks, or a CSV with a column stack, which replay opens.
 * report: as for run(). 0 or -errno with e. */
int diff(const struct config *config, source_opener *replay, void (*report)(const char *lines),
	 struct error *e);

#endif
