/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A distribution of durations in powers of two. Zeroed is an empty one.
 */
#ifndef TSNAP_SAMPLE_HISTOGRAM_H
#define TSNAP_SAMPLE_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BUCKETS 32
#define HISTOGRAM_FIRST_NS 64 /* end of the first bucket */

struct histogram {
	int64_t sum_ns;
	int64_t max_ns; /* exact */
	/* Bytes that were moved, or ns of the sum that were for a quota; 0 of a kind that has
	 * neither, ABSENT where it is not known. */
	int64_t amount;
	int64_t buckets[HISTOGRAM_BUCKETS];
};

/* Bounds of a bucket: from low_ns on, below high_ns. The first begins at 0, the last one has no
 * end: INT64_MAX. */
int64_t histogram_low_ns(int bucket);
int64_t histogram_high_ns(int bucket);

int64_t histogram_count(const struct histogram *histogram);
void histogram_merge(struct histogram *to, const struct histogram *from);

/* The duration that permille of the events do not exceed, as well as the buckets can tell: the
 * events of a bucket are taken to lie evenly between its bounds, the last one on the upper bound,
 * which is the maximum where that is less. So a single event is told exactly. 0 of an empty one. */
int64_t histogram_quantile_ns(const struct histogram *histogram, int permille);

#endif
