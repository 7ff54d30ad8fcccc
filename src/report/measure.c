/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/measure.h"
#include "report/tally.h"
#include "report/value.h"

#define AT(member) offsetof(struct measures, member)

const struct column measure_columns[] = {
	{"avg_thr", "AVG_THR", "threads of the group in an average scan: samples / scans",
	 KIND_HUNDREDTHS, ROLE_MEASURE, 0, 7, AT(avg_thr)},
	{"seconds", "SECONDS", "time that the group's samples stand for", KIND_HUNDREDTHS,
	 ROLE_MEASURE, 0, 7, AT(seconds)},
	{"share", "SHARE", "samples of the group among all samples, in percent", KIND_PERMILLE,
	 ROLE_MEASURE, 0, 5, AT(share)},
	{"samples", "SAMPLES", "samples of the group", KIND_NUMBER, ROLE_MEASURE, 0, 7,
	 AT(samples)},
};

const size_t measure_column_count = sizeof(measure_columns) / sizeof(measure_columns[0]);

struct measures measures_of(int64_t samples, int64_t weight_us, const struct tally *tally)
{
	return (struct measures){
		.samples = samples,
		.avg_thr = ratio(samples, 100, tally->scans),
		.seconds = ratio(weight_us, 100, US_PER_SECOND),
		.share = ratio(samples, 1000, tally->samples),
	};
}
