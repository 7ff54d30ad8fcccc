/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The columns and the filter of a run, by its options. */
#ifndef TSNAP_CLI_RUN_COLUMNS_H
#define TSNAP_CLI_RUN_COLUMNS_H

#include "cli/config.h"
#include "report/report.h"

/* Fills the report's filter and columns. *root_count: of these, the columns before the renderer's
 * own last ones. 0 or -errno with e. */
int run_columns(const struct config *config, struct report *report, size_t *root_count,
		struct error *e);
/* Refuses options for the reading of user stacks if no part needs any. */
int run_columns_check(const struct config *config, const struct report *report, struct error *e);

#endif
