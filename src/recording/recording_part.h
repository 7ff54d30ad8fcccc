/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A part of a recording, typed after its name: FILE@FROM..TO. Times are in UTC, complete or
 * abbreviated, with a date or of the day of the recording's first row; either may be missing.
 */
#ifndef TSNAP_RECORDING_RECORDING_PART_H
#define TSNAP_RECORDING_RECORDING_PART_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Times from from_us on and before until_us; ABSENT: from the first row, to the last. Only the
 * files of that host, as their names have it; NULL: there must not be several. */
struct recording_part {
	const char *host;
	int64_t from_us, until_us;
	bool from_of_day, until_of_day; /* the time is since midnight of a day not known yet */
};

/* Splits typed into path and part; *path becomes malloced. If typed is the name of a file, it has
 * no part. 0, or -EINVAL with a usage error. */
int recording_part_read(const char *typed, char **path, struct recording_part *part,
			struct error *e);
/* True if the part has all times of the recording. */
bool recording_part_whole(const struct recording_part *part);
/* Sets the day of times without a date: the day of the first row. */
void recording_part_date(struct recording_part *part, int64_t first_us);
bool recording_part_has(const struct recording_part *part, int64_t time_us);

#endif
