/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows of a recording that describe the host: one at the beginning of each part. */
#ifndef TSNAP_RECORDING_RECORDING_HOST_H
#define TSNAP_RECORDING_RECORDING_HOST_H

#include "base/text.h"
#include "recording/csv_reader.h"
#include "sample/source.h"

#define RECORDING_HOST_HEADER                                                        \
	"timestamp,format,version,host,kernel,machine,cpus,rate_hz,boot_id,boot_us," \
	"timezone,source,command"

/* Facts of such a row that a replay uses. Zeroed: nothing is known. */
struct recording_host {
	char host[SOURCE_TEXT_SIZE], kernel[SOURCE_TEXT_SIZE];
	int64_t cpus, rate_hz; /* 0: not known */
	bool of_proc;	       /* struct source_status */
};

/* Adds a row of that time. status: of the source that is recorded. */
void recording_host_add(struct text *rows, int64_t time_us, const struct source_status *status,
			const char *command);
/* Reads the first row, if there is one. */
void recording_host_read(struct recording_host *host, struct csv_input *input);
void recording_host_describe(const struct recording_host *host, struct source_status *status);

#endif
