/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A profile of pprof (github.com/google/pprof, proto/profile.proto), written from the inside out:
 * strings, frames and kinds of frames are numbered when they are first met.
 *
 * A sample has four values, in ns: time on a CPU, off it (asleep), in a run queue and in state D;
 * one of them is not 0. The value with the largest sum is the profile's default, which readers show
 * first. Frames have names and no addresses, so that no symbols need to be found. Mappings are
 * files, with their build-ids; for frames that are in no file, kinds of frames
 * (render/frame_kind.h).
 */
#ifndef TSNAP_RENDER_PPROF_H
#define TSNAP_RENDER_PPROF_H

#include <stdint.h>

#include "base/index.h"
#include "base/text.h"

enum pprof_value { PPROF_ON_CPU, PPROF_OFF_CPU, PPROF_RUN_QUEUE, PPROF_DISK, PPROF_VALUES };

/* A zeroed profile is empty. */
struct pprof {
	struct text fields;	 /* fields of the profile, without its strings */
	struct text strings;	 /* the fields of the strings */
	struct index string_ids; /* interned text to its number */
	uint64_t string_count;
	int64_t total_ns[PPROF_VALUES];
	struct index frame_ids;	  /* interned text and mapping to location and function */
	struct index mapping_ids; /* interned file, or title of a kind of frames, to its number */
	struct text labels;	  /* fields of the next sample's labels */
};

/* A label of the next sample: a text, or a number where text is NULL. Empty texts add no label. */
void pprof_label(struct pprof *pprof, const char *name, const char *text, int64_t number);
/* Ends the sample. frames: outermost first, separated by ';', with annotations; files: files of the
 * first frames, as in the column ufiles (sample/stack_files.h), or NULL. */
void pprof_sample(struct pprof *pprof, const char *frames, const char *files,
		  enum pprof_value value, int64_t ns);
/* Ends the profile, which began at from_us (UTC), and adds it to out, packed with gzip. 0, or
 * -errno. */
int pprof_end(struct pprof *pprof, int64_t from_us, int64_t duration_us, struct text *out);
void pprof_done(struct pprof *pprof);

#endif
