/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A recording of two tiers as one source: scans of the fine one where there are such, else those of
 * the archive.
 */
#ifndef TSNAP_RECORDING_TIERS_H
#define TSNAP_RECORDING_TIERS_H

#include "sample/source.h"

/* Both become the new source's. It gives no parts of scans. */
struct source *tiers_new(struct source *fine, struct source *archive);
/* The two of a source that tiers_new() made; false: it is another one. */
bool tiers_of(const struct source *source, struct source **fine, struct source **archive);

#endif
