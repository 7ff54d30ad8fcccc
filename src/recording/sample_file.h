/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replays what `tsnap --csv` wrote: columns are matched by name, in any choice and order; rows of
 * one timestamp are one scan. Streams: memory holds one scan. Recordings may follow each other in
 * one file, each with its header line.
 */
#ifndef TSNAP_RECORDING_SAMPLE_FILE_H
#define TSNAP_RECORDING_SAMPLE_FILE_H

#include "base/error.h"
#include "sample/filter/filter.h"
#include "recording/csv_reader.h"
#include "recording/recording_part.h"
#include "sample/source.h"

/* A recording that is not just one CSV: where its rows come from. */
struct sample_input {
	const char *name; /* for errors */
	struct csv_input *samples;
	struct csv_input *scans;    /* rows as of sample/scan_rows.h; NULL: none */
	struct csv_input *stacks;   /* a dictionary, perhaps an empty one; NULL: none */
	struct recording_part part; /* the times that are wanted */
	_Atomic bool lenient;	    /* rows that can't be read are counted and passed over */
	uint64_t bytes; /* size of the samples, in files; 0: not known, or not in files alone */
	/* Adds what the input knows of the host, and what it lost. */
	void (*describe)(struct sample_input *input, struct source_status *status);
	void (*close)(struct sample_input *input); /* frees it */
};

/* path: "-" is standard input; @FROM..TO behind it takes a part of it (recording_part.h). filter
 * must outlive the source. needs: NEED_*, closed; text that they do not ask for is not kept. 0;
 * -EINTR: a signal came before the header line; or -errno with e. */
int sample_file_open(const char *path, const struct filter *filter, uint64_t needs,
		     struct source **source, struct error *e);

/* As sample_file_open(), of an input, which becomes the source's, also when this fails. */
int sample_file_open_input(struct sample_input *input, const struct filter *filter, uint64_t needs,
			   struct source **source, struct error *e);

/* Has a dictionary of stacks (recording/stack_dict.h) tell what its rows' hashes stand for; once,
 * before the first scan. 0, or -errno with e. */
int sample_file_stacks(struct source *source, const char *path, struct error *e);

#endif
