/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The rows of findings in a recording: those of each minute, most time first, as they were found on
 * the host, where quotas and limits are known that samples do not have. Columns are matched by
 * name.
 */
#ifndef TSNAP_RECORDING_FINDING_ROWS_H
#define TSNAP_RECORDING_FINDING_ROWS_H

#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "recording/csv_reader.h"

#define FINDING_ROWS_HEADER \
	"timestamp,begin,rank,finding,certainty,time_us,longest_us,culprit,pid,thing,text"

struct finding_entry {
	int64_t begin_us, end_us; /* of the time that it is about, UTC */
	int64_t rank;		  /* from 1 on; 0: nothing was found in that time */
	int64_t time_us, longest_us;
	int64_t pid; /* of the culprit; 0: not known, or several */
	/* texts are valid until the next one is read; "": not known */
	const char *finding, *certainty;
	const char *culprit, *thing; /* names of those with most time */
	const char *text;
};

void finding_row_add(struct text *rows, const struct finding_entry *entry);

typedef void finding_callback(void *to, const struct finding_entry *entry);
/* Gives each row to take; rows that can't be read are skipped. 0, -EINTR, or -errno with e. */
int finding_rows_read(struct csv_input *input, const char *name, finding_callback *take, void *to,
		      struct error *e);

#endif
