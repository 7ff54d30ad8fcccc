/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kinds of rows in a recording. Each kind has files of its own, so that every file is one CSV
 * with a constant number of columns.
 */
#ifndef TSNAP_RECORDING_RECORD_KIND_H
#define TSNAP_RECORDING_RECORD_KIND_H

#include <stddef.h>

/* Values are written into frames: never change one, add new ones at the end. */
enum record_kind {
	RECORD_SAMPLES,	      /* a row per sampled thread and scan */
	RECORD_SCANS,	      /* a row per scan, including scans that saw no thread */
	RECORD_STACKS,	      /* the dictionary of stacks */
	RECORD_EVENTS,	      /* single events: --slower, --trace exec */
	RECORD_DISTRIBUTIONS, /* distributions of --trace, a row a minute and group */
	RECORD_HOST,	      /* the host and the options, a row per part */
	RECORD_ARCHIVE,	      /* the second tier: samples of a few of the scans, kept longer */
	RECORD_ARCHIVE_SCANS, /* a row per scan of the second tier */
	RECORD_KIND_COUNT,
};

/* Name of the kind in file names. NULL: there is no such kind. */
const char *record_kind_name(unsigned int kind);
/* Finds a kind by its name; RECORD_KIND_COUNT: there is none of that name. */
enum record_kind record_kind_find(const char *name);

#endif
