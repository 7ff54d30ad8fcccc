/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A profile of pprof (github.com/google/pprof, proto/profile.proto), written from the inside out:
 * strings, frames and kinds of frames are numbered when they are first met.
 *
 * A sample has four values, in ns: time on a CPU, off it (asleep), in a run queue and in state D;
 * one of them is not 0. The one that has most in all is what readers are told to show first. Frames
 * have names and no addresses, so that nobody must find symbols. Mappings are files, with their
 * build-ids; for frames in none, kinds of frames (render/frame_kind.h).
 */
#ifndef TSNAP_RENDER_PPROF_H
#define TSNAP_RENDER_PPROF_H

#include <stdint.h>

#include "base/index.h"
#include "base/text.h"

enum pprof_value { PPROF_ON_CPU, PPROF_OFF_CPU, PPROF_RUN_QUEUE, PPROF_DISK, PPROF_VALUES };

/* Zeroed is an empty one. */
struct pprof {
	struct text fields;	 /* fields of the profile, without its strings */
	struct text strings;	 /* the fields of the strings */
	struct index string_ids; /* from an interned text to its number */
	uint64_t string_count;
	int64_t total_ns[PPROF_VALUES];
	struct index frame_ids;	   /* from an interned text and mapping to location and function */
	struct index mapping_ids;  /* from an interned file, or title of a kind of frames */
	struct text sample;	   /* the one that is being made: */
	struct text labels, stack; /* fields of its labels, frames with ';' between */
};

/* A label of the next sample: a text, or a number where text is NULL. Empty texts are none. */
void pprof_label(struct pprof *pprof, const char *name, const char *text, int64_t number);
/* Ends the sample. frames: outermost first, with ';' between, and their annotations; files: of the
 * first of them, as in the column ufiles (sample/stack_files.h), or NULL. */
void pprof_sample(struct pprof *pprof, const char *frames, const char *files,
		  enum pprof_value value, int64_t ns);
/* Ends the profile, of a time in UTC, and adds it to out, packed with gzip. 0, or -errno. */
int pprof_end(struct pprof *pprof, int64_t from_us, int64_t duration_us, struct text *out);
void pprof_done(struct pprof *pprof);

#endif
