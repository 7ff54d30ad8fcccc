/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The part of a recording that is being written: its open files, and the rows that are not in them
 * yet. Used by the recorder's thread only.
 */
#ifndef TSNAP_RECORDING_RECORDER_PART_H
#define TSNAP_RECORDING_RECORDER_PART_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/file_rights.h"
#include "recording/frame.h"
#include "recording/part_name.h"
#include "recording/retention.h"

#define PART_FRAME_BYTES (8u << 20) /* rows of a kind of that size are written early */

struct recorder_part {
	int directory;		   /* owned by the recorder */
	struct file_rights rights; /* of the files */
	char *headers[RECORD_KIND_COUNT];
	struct retention retention;
	struct retention_log removed;
	struct part_name name; /* name of the present part, without a kind */
	bool begun;	       /* a part was begun */
	bool fresh;	       /* a new part was begun that was not announced yet */
	struct frame_file files[RECORD_KIND_COUNT];
	struct frame_file removed_stacks; /* rows that were not written yet refer to stacks in it */
	struct text rows[RECORD_KIND_COUNT];
	int64_t first_us[RECORD_KIND_COUNT], last_us[RECORD_KIND_COUNT]; /* times of the rows */
};

/* Adds rows of a scan. */
void recorder_part_add(struct recorder_part *part, enum record_kind kind, int64_t time_us,
		       const struct text *rows);
/* True if rows of that time belong to the part, and still fit. */
bool recorder_part_takes(const struct recorder_part *part, int64_t time_us);
/* Begins the part for rows of that time, or continues it if it exists. All rows of the part before
 * must have been written. 0 or -errno. */
int recorder_part_begin(struct recorder_part *part, int64_t time_us);
/* Writes all rows. 0; or -errno: rows that are not on the disk are kept. */
int recorder_part_flush(struct recorder_part *part, int64_t now_us);
/* Ends the part if files of it have been removed, as rows would go to files without names, or cut,
 * as they would stand behind a hole. Returns how many were. */
int recorder_part_removed(struct recorder_part *part);
void recorder_part_done(struct recorder_part *part);

#endif
