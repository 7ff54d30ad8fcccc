/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replays what `tsnap --csv` wrote: columns are matched by name, in any choice and order; rows of
 * one timestamp are one scan. Streams: memory holds one scan. Recordings may follow each other in
 * one file, each with its heading.
 */
#ifndef TSNAP_RECORDING_SAMPLE_FILE_H
#define TSNAP_RECORDING_SAMPLE_FILE_H

#include "base/error.h"
#include "sample/filter/filter.h"
#include "sample/source.h"

/* path: "-" is standard input; @FROM..TO behind it takes a part of it (recording_part.h). filter
 * must outlive the source. needs: NEED_*, closed; text that they do not ask for is not kept. 0;
 * -EINTR: a signal came before the heading; or -errno with e. */
int sample_file_open(const char *path, const struct filter *filter, uint64_t needs,
		     struct source **source, struct error *e);

/* Has a dictionary of stacks (recording/stack_dict.h) tell what its rows' hashes stand for; once,
 * before the first scan. 0, or -errno with e. */
int sample_file_stacks(struct source *source, const char *path, struct error *e);

#endif
