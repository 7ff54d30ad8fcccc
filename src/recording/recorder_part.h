/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The part of a recording that is being written: its open files, and the rows that are not in them
 * yet. Of the recorder's thread alone.
 */
#ifndef TSNAP_RECORDING_RECORDER_PART_H
#define TSNAP_RECORDING_RECORDER_PART_H

#include <stdbool.h>
#include <sys/types.h>

#include "recording/frame_file.h"
#include "recording/part_name.h"
#include "recording/retention.h"

#define PART_FRAME_BYTES (8u << 20) /* rows of a kind that have a frame written early */

struct recorder_part {
	int directory; /* the recorder's */
	gid_t group;   /* group of the files; -1: as the system makes them */
	char *headers[RECORD_KIND_COUNT];
	struct retention retention;
	struct part_name name; /* name of the present part, without a kind */
	bool begun;	       /* there is one */
	bool fresh;	       /* until somebody was told so */
	struct frame_file files[RECORD_KIND_COUNT];
	struct text rows[RECORD_KIND_COUNT];
	int64_t first_us[RECORD_KIND_COUNT], last_us[RECORD_KIND_COUNT]; /* times of the rows */
};

/* Adds rows of a scan. */
void recorder_part_add(struct recorder_part *part, enum record_kind kind, int64_t time_us,
		       const struct text *rows);
/* True if rows of that time belong to the part, and there is still room for them. */
bool recorder_part_takes(const struct recorder_part *part, int64_t time_us);
/* Makes the part that rows of that time belong to the present one; goes on in one that is there.
 * What it holds must have been written. 0 or -errno. */
int recorder_part_begin(struct recorder_part *part, int64_t time_us);
/* Writes all rows. 0; or -errno: those that are not on the disk are kept. */
int recorder_part_flush(struct recorder_part *part, int64_t now_us);
void recorder_part_done(struct recorder_part *part);

#endif
