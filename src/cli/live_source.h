/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The live source with the options of the command line. */
#ifndef TSNAP_CLI_LIVE_SOURCE_H
#define TSNAP_CLI_LIVE_SOURCE_H

#include "cli/config.h"
#include "live/context/live_config.h"
#include "sample/filter/filter.h"
#include "sample/source.h"

struct live_config live_config_of(const struct config *config);

/* Does live_open() for run(): a source_opener. */
int live_source_open(const struct config *config, struct filter *filter, uint64_t needs,
		     struct source **source, struct error *e);

#endif
