/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Replays a CSV that `tsnap --csv` wrote: columns are matched by name, in any choice and order;
 * rows of one timestamp are one scan. Only one scan is in memory. One file may have several
 * recordings, each with its header line.
 */
#ifndef TSNAP_RECORDING_SAMPLE_FILE_H
#define TSNAP_RECORDING_SAMPLE_FILE_H

#include "base/error.h"
#include "recording/csv_reader.h"
#include "recording/recording_part.h"
#include "sample/filter/filter.h"
#include "sample/source.h"

/* The sources of a recording's rows. */
struct sample_input {
	const char *name; /* name for errors */
	struct csv_input *samples;
	struct csv_input *scans;    /* rows of scans, see recording/scan_rows.h; NULL: none */
	struct csv_input *stacks;   /* rows of a dictionary, possibly an empty one; NULL: none */
	struct recording_part part; /* requested times */
	_Atomic bool lenient;	    /* rows that can't be read are counted and skipped */
	uint64_t bytes; /* size of the samples, in files; 0: not known, or not in files alone */
	/* Adds what the input knows of the host, and its losses. */
	void (*describe)(struct sample_input *input, struct source_status *status);
	void (*close)(struct sample_input *input); /* frees the input */
};

/* Opens the samples of a recording. The source owns the input, even if this fails. filter must
 * outlive the source. needs: NEED_*, closed; text that they do not include is not kept. 0; -EINTR:
 * a signal came before the header line; or -errno with e. */
int sample_file_open(struct sample_input *input, const struct filter *filter, uint64_t needs,
		     struct source **source, struct error *e);

struct event;
struct recorded_distribution;
typedef void recorded_event_callback(void *to, const struct event *event);
/* Gives each event of the input to take; rows that can't be read are skipped. Texts are transient.
 * 0, -EINTR, or -errno with e. */
int event_rows_read(struct csv_input *input, const char *name, recorded_event_callback *take,
		    void *to, struct error *e);

typedef void recorded_distribution_callback(void *to, const struct recorded_distribution *recorded);
/* The same for distributions. */
int distribution_rows_read(struct csv_input *input, const char *name,
			   recorded_distribution_callback *take, void *to, struct error *e);

/* Does recording_stacks() for such a source. */
int sample_file_stacks(struct source *source, const char *path, struct error *e);

#endif
