/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replays what `tsnap --csv` wrote: columns are matched by name, in any choice and order; rows of
 * one timestamp are one scan. Streams: memory holds one scan. Recordings may follow each other in
 * one file, each with its heading.
 */
#ifndef TSNAP_SAMPLE_SAMPLE_FILE_H
#define TSNAP_SAMPLE_SAMPLE_FILE_H

#include "base/error.h"
#include "sample/filter.h"
#include "sample/source.h"

/* path: "-" is standard input; it and filter must outlive the source. needs: NEED_*,
 * closed; text that they do not ask for is not kept. 0; -EINTR: a signal came before the heading;
 * or -errno with e. */
int sample_file_open(const char *path, const struct filter *filter, uint64_t needs,
		     struct source **source, struct error *e);

#endif
