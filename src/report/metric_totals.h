/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counters of --metrics, from the start of the run on: time by group, and what was missed. A group
 * is identified by the text of its labels, which outlives the interned strings of its values.
 *
 * Bounded: the first METRIC_GROUPS_MAX groups, of each interval those with the most time first;
 * time of all others goes to one group.
 */
#ifndef TSNAP_REPORT_METRIC_TOTALS_H
#define TSNAP_REPORT_METRIC_TOTALS_H

#include <stddef.h>
#include <stdint.h>

#include "sample/source.h"

#define METRIC_GROUPS_MAX 500

struct metric_group {
	char *labels;	   /* labels as they are written: state="ON",comm="x" */
	uint64_t hash;	   /* hash of the labels */
	int64_t us;	   /* time since the start */
	int64_t latest_us; /* time in the latest interval */
};

struct metric_missed {
	const char *what; /* name of what was missed; static */
	uint64_t count;
};

/* A zeroed struct is empty. */
struct metric_totals {
	struct metric_group groups[METRIC_GROUPS_MAX];
	size_t count;
	int64_t others_us, others_latest_us; /* time of groups that did not fit */
	struct metric_missed missed[SOURCE_MISSED_MAX];
	size_t missed_count;
	int64_t scans, own_cpu_ns, bpf_ns;
};

/* Begins an interval. */
void metric_totals_begin(struct metric_totals *totals);
/* Adds time to the group with these labels. */
void metric_totals_add(struct metric_totals *totals, const char *labels, int64_t us);
/* Adds the interval's scans, and what the source reports of it. */
void metric_totals_end(struct metric_totals *totals, int64_t scans,
		       const struct source_status *status);
void metric_totals_done(void *totals);

#endif
