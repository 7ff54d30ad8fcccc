/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Disk usage of a recording, for --check -o DIR. */
#ifndef TSNAP_RECORDING_RECORDING_RATE_H
#define TSNAP_RECORDING_RECORDING_RATE_H

#include "base/error.h"
#include "base/text.h"
#include "recording/retention.h"

/* Adds lines: size of the directory, size of a day at the rate of its last day, and time for which
 * the disk and the bounds suffice. 0, or -errno with e. */
int recording_rate_describe(const char *path, const struct retention *retention, struct text *text,
			    struct error *e);

#endif
