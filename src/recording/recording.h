/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Opens recordings for replay: directories that `tsnap -o` wrote, files of one, or any CSV of
 * samples, compressed or not. Files are read in the order of their hours. Only files that may have
 * the requested times are opened, and only such frames of them are unpacked. A recording of two
 * tiers is one source: scans of the fine tier where it has some, else those of the archive.
 */
#ifndef TSNAP_RECORDING_RECORDING_H
#define TSNAP_RECORDING_RECORDING_H

#include <stdbool.h>

#include "base/error.h"
#include "recording/finding_rows.h"
#include "recording/recording_part.h"
#include "recording/sample_file.h"
#include "sample/filter/filter.h"
#include "sample/source.h"

/* paths: names up to a NULL; "-" is standard input; if there is only one name, @FROM..TO may follow
 * it. part: the times that are wanted. filter must outlive the source. 0, -EINTR, or -errno with e.
 */
int recording_open(const char *const *paths, const struct recording_part *part,
		   const struct filter *filter, uint64_t needs, struct source **source,
		   struct error *e);

/* A host that recordings are of. */
struct recorded_host {
	const char *name; /* as the names of files have it; interned */
	const char *path; /* the only one of the names that has files of it; NULL: several have */
};

/* Finds the hosts that the recordings are of, by the names of their files, in the order in which
 * they are named; none of other files. 0, or -errno with e. */
int recording_hosts(const char *const *paths, const struct recording_part *part,
		    struct recorded_host *hosts, size_t most, size_t *count, struct error *e);
/* Finds a directory that is named twice. 0, or -EINVAL with e. */
int recording_twice_check(const char *const *paths, struct error *e);

/* Gives the findings of each minute to take, as the recorder found them, also some of the minutes
 * about the part. 0, -EINTR, or -errno with e; without any, take is not called. */
int recording_findings(const char *const *paths, const struct recording_part *part,
		       finding_callback *take, void *to, struct error *e);

/* Gives the single events of the part to take, in the order in which they were recorded. 0, -EINTR,
 * or -errno with e; without any, take is not called. */
int recording_events(const char *const *paths, const struct recording_part *part,
		     recorded_event_callback *take, void *to, struct error *e);

/* Gives the distributions of the part to take, as recording_events(); -ENODATA with e: none were
 * recorded. */
int recording_distributions(const char *const *paths, const struct recording_part *part,
			    recorded_distribution_callback *take, void *to, struct error *e);

/* Sets the dictionary of stacks (recording/stack_dict.h) for the hashes in the rows of a source
 * that recording_open() opened; call once, before the first scan. 0, or -errno with e. */
int recording_stacks(struct source *source, const char *path, struct error *e);

/* True if the path is a directory, or a file that is compressed with zstd. */
bool recording_is_packed(const char *path);

/* Copies the frames of that time from a recording of -o into one file that recording_open() reads:
 * whole frames, so some seconds more than the part. An existing file is replaced when the copy is
 * complete. 0, or -errno with e. */
int recording_snapshot(const char *const *paths, const struct recording_part *part,
		       const char *file, struct error *e);

#endif
