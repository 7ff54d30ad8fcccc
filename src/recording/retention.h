/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Retention of a recording: the oldest parts of this host are removed first. If the recording has
 * an archive, samples and scans of a part's first tier are removed before its other files, as they
 * are most of it. --check -o DIR reports how long the bounds and the disk will suffice. */
#ifndef TSNAP_RECORDING_RETENTION_H
#define TSNAP_RECORDING_RETENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "recording/part_name.h"

/* A zeroed struct keeps everything. */
struct retention {
	int64_t keep_us;	  /* parts are removed so long after their hour's end; 0: never */
	bool has_archive;	  /* keep_us applies to the first tier only */
	int64_t keep_archive_us;  /* as keep_us, for all but the first tier; 0: never */
	int64_t keep_bytes;	  /* limit of the size of all files of this host; 0: no bound */
	int64_t keep_free_tenths; /* least free part of the file system, in 0.1 %; 0: no bound */
};

/* What was removed. A zeroed struct is empty. */
struct retention_log {
	struct text words;	  /* lines for the user, who takes them */
	int64_t hour_us, aged_us; /* the present hour; the last one that was removed for its age */
	int aged;		  /* number of those, within the present hour */
};

/* Removes parts until all bounds hold with `coming` bytes more; never the present part. Ages are
 * counted from the newest recorded hours, and at most a day of hours goes in each hour: a clock
 * that is ahead for a moment makes nothing old. 0; -ENOSPC: nothing more can be removed and a bound
 * does not hold; or another -errno. */
int retention_apply(const struct retention *retention, int directory,
		    const struct part_name *present, int64_t now_us, uint64_t coming,
		    struct retention_log *log);
/* The largest size of a part, so that removing one leaves most of what is kept; 0: no bound. */
uint64_t retention_part_bytes(const struct retention *retention);

/* Adds lines: size of the directory, size of a day at the rate of its last day, and time for which
 * the disk and the bounds suffice. 0, or -errno with e. */
int recording_rate_describe(const char *path, const struct retention *retention, struct text *text,
			    struct error *e);

#endif
