/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A distribution of durations in powers of two. A zeroed struct is an empty one. */
#ifndef TSNAP_SAMPLE_HISTOGRAM_H
#define TSNAP_SAMPLE_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BUCKETS 32
#define HISTOGRAM_FIRST_NS 64 /* end of the first bucket */

#define SPLIT_PARTS 4
#define SPLIT_CLASSES 48 /* at least wait_rule_count */

/* What the durations of each bucket consist of: cpu, run queue, disk, other sleep. */
struct histogram_split {
	int64_t parts_ns[HISTOGRAM_BUCKETS][SPLIT_PARTS];
	/* samples of threads asleep meanwhile, by the first rule of their wait class */
	int64_t slept[SPLIT_CLASSES];
};

struct histogram {
	int64_t sum_ns;
	int64_t max_ns; /* exact maximum */
	/* Bytes that were moved, or ns of the sum that were for a quota, or ns idle before; 0 for a
	 * kind that has none of these, ABSENT if not known. */
	int64_t amount;
	int64_t below; /* values below 0, which are in no bucket */
	int64_t buckets[HISTOGRAM_BUCKETS];
	const struct histogram_split *split; /* the caller's; NULL: it is not known */
};

/* A histogram of numbers has the same buckets with bounds that are 32 times less, so that the first
 * one has 0 and 1; its sum and maximum are of the numbers. */
#define HISTOGRAM_AMOUNT_SHIFT 5

/* Bounds of a bucket: low_ns <= duration < high_ns. The first begins at 0, the last has no end:
 * INT64_MAX. */
int64_t histogram_low_ns(int bucket);
int64_t histogram_high_ns(int bucket);

/* Returns the bucket of a duration. */
int histogram_bucket(int64_t ns);

int64_t histogram_count(const struct histogram *histogram);
/* Leaves to->split as it is. */
void histogram_merge(struct histogram *to, const struct histogram *from);

/* The duration that permille of the events do not exceed, as precise as the buckets allow: the
 * events of a bucket are assumed evenly spread between its bounds, the last one on the upper bound,
 * or on the maximum if that is less. So a single event is exact. 0 for an empty histogram. */
int64_t histogram_quantile_ns(const struct histogram *histogram, int permille);
/* The same of a histogram of numbers. */
int64_t histogram_quantile_amount(const struct histogram *histogram, int permille);

/* Adds up what the longest permille of the events, at least one, consist of; 1000: all. Of a bucket
 * that is cut, its mean stands for the longest ones. */
void histogram_split_sum(const struct histogram *histogram, int permille,
			 int64_t parts_ns[SPLIT_PARTS]);

#endif
