/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The live host as a source of scans: kernel and lookup put together. */
#ifndef TSNAP_LIVE_LIVE_H
#define TSNAP_LIVE_LIVE_H

#include "base/error.h"
#include "base/text.h"
#include "live/context/live_config.h"
#include "sample/filter/filter.h"
#include "sample/source.h"

/* needs: NEED_*. filter must outlive the source; processes that config names are resolved
 * into filter. 0 or -errno with e. */
int live_open(const struct live_config *config, struct filter *filter, uint64_t needs,
	      struct source **source, struct error *e);

/* --check: what this host offers. 0 when tsnap can run, else -errno with e; out is filled either
 * way. */
int live_check(const struct live_config *config, struct text *out, struct error *e);

/* --write-offsets: writes the kernel's field offsets to a file. 0, or -errno with e. */
int live_write_offsets(const struct live_config *config, struct error *e);

#endif
