/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sample/histogram.h"

int64_t histogram_low_ns(int bucket)
{
	return bucket ? (int64_t)HISTOGRAM_FIRST_NS << (bucket - 1) : 0;
}

int64_t histogram_high_ns(int bucket)
{
	return bucket == HISTOGRAM_BUCKETS - 1 ? INT64_MAX : (int64_t)HISTOGRAM_FIRST_NS << bucket;
}

int64_t histogram_count(const struct histogram *histogram)
{
	int64_t count = 0;

	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
		count += histogram->buckets[i];
	return count;
}

void histogram_merge(struct histogram *to, const struct histogram *from)
{
	to->sum_ns += from->sum_ns;
	if (from->max_ns > to->max_ns)
		to->max_ns = from->max_ns;
	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
		to->buckets[i] += from->buckets[i];
}

int64_t histogram_quantile_ns(const struct histogram *histogram, int permille)
{
	double rank = (double)histogram_count(histogram) * permille / 1000, before = 0;

	for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
		double here = (double)histogram->buckets[i];
		int64_t low_ns = histogram_low_ns(i), high_ns = histogram_high_ns(i);

		if (high_ns > histogram->max_ns)
			high_ns = histogram->max_ns;
		if (here > 0 && before + here >= rank)
			return low_ns +
			       (int64_t)((double)(high_ns - low_ns) * (rank - before) / here + 0.5);
		before += here;
	}
	return 0;
}
