/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A recording of two tiers as one source: scans of the fine tier where it has some, else those of
 * the archive.
 */
#ifndef TSNAP_RECORDING_TIERS_H
#define TSNAP_RECORDING_TIERS_H

#include "sample/source.h"

/* Makes one source of two, which it owns then. It delivers whole scans, no batches. */
struct source *tiers_new(struct source *fine, struct source *archive);
/* Gets the two sources of a source that tiers_new() made; false: it is another source. */
bool tiers_of(const struct source *source, struct source **fine, struct source **archive);

#endif
