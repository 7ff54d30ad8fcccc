/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a report can tell of a group besides the columns of its samples: rows as in
 * sample_columns[], read from a struct measures.
 */
#ifndef TSNAP_REPORT_MEASURE_H
#define TSNAP_REPORT_MEASURE_H

#include <stddef.h>
#include <stdint.h>

#include "sample/column.h"

struct measures {
	int64_t samples;
	int64_t avg_thr; /* hundredths */
	int64_t seconds; /* hundredths */
	int64_t share;	 /* per mille */
};

extern const struct column measure_columns[];
extern const size_t measure_column_count;

struct tally;

/* Of a group with these samples in the report that tally counts. */
struct measures measures_of(int64_t samples, int64_t weight_us, const struct tally *tally);

#endif
