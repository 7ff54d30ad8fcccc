/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens what was recorded, for replay: directories that `tsnap -o` wrote, files of one, or any CSV
 * of samples, compressed or not. Files follow each other in the order of their hours; only those
 * that may hold the times that are asked for are opened, and of these only such frames unpacked.
 */
#ifndef TSNAP_RECORDING_RECORDING_H
#define TSNAP_RECORDING_RECORDING_H

#include <stdbool.h>

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

/* sample_file_stacks() of what recording_open() opened. */
int recording_stacks(struct source *source, const char *path, struct error *e);

/* True if the path is a directory, or a file that is compressed with zstd. */
bool recording_is_packed(const char *path);

/* Cuts the frames of that time out of what -o recorded, into one file that recording_open() reads:
 * whole frames, so some seconds more than the part. A file that was there is replaced once this is
 * done. 0, or -errno with e. */
int recording_snapshot(const char *const *paths, const struct recording_part *part,
		       const char *file, struct error *e);

#endif
