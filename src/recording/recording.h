/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens what was recorded, for replay: directories that `tsnap -o` wrote, files of one, or any CSV
 * of samples, compressed or not. Files follow each other in the order of their hours; only those
 * that may hold the times that are asked for are opened, and of these only such frames unpacked.
 */
#ifndef TSNAP_RECORDING_RECORDING_H
#define TSNAP_RECORDING_RECORDING_H

#include "base/error.h"
#include "sample/filter/filter.h"
#include "recording/recording_part.h"
#include "sample/source.h"

/* paths: names up to a NULL; "-" is standard input; where it is the only one, @FROM..TO may follow
 * it. part: the times that are wanted. filter must outlive the source. 0, -EINTR, or -errno with e.
 */
int recording_open(const char *const *paths, const struct recording_part *part,
		   const struct filter *filter, uint64_t needs, struct source **source,
		   struct error *e);

#endif
