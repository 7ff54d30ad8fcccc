/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sample/histogram.h"
#include "sample/sample.h"

int64_t histogram_low_ns(int bucket)
{
	return bucket ? (int64_t)HISTOGRAM_FIRST_NS << (bucket - 1) : 0;
}

int64_t histogram_high_ns(int bucket)
{
	return bucket == HISTOGRAM_BUCKETS - 1 ? INT64_MAX : (int64_t)HISTOGRAM_FIRST_NS << bucket;
}

int histogram_bucket(int64_t ns)
{
	int bucket = 0;

	while (bucket < HISTOGRAM_BUCKETS - 1 && ns >= histogram_high_ns(bucket))
		bucket++;
	return bucket;
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
	to->below += from->below;
	if (to->amount == ABSENT || from->amount == ABSENT)
		to->amount = ABSENT;
	else
		to->amount += from->amount;
	if (from->max_ns > to->max_ns)
		to->max_ns = from->max_ns;
	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
		to->buckets[i] += from->buckets[i];
}

int64_t histogram_quantile_ns(const struct histogram *histogram, int permille)
{
	__int128 wanted = ((__int128)histogram_count(histogram) * permille + 999) / 1000;
	int64_t left = wanted > 1 ? (int64_t)wanted : 1;

	for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
		int64_t here = histogram->buckets[i], low_ns = histogram_low_ns(i);
		int64_t high_ns = histogram_high_ns(i);

		if (high_ns > histogram->max_ns)
			high_ns = histogram->max_ns;
		if (here >= left)
			return low_ns + (int64_t)((__int128)(high_ns - low_ns) * left / here);
		left -= here;
	}
	return 0;
}

int64_t histogram_quantile_amount(const struct histogram *histogram, int permille)
{
	const int64_t most = INT64_MAX >> HISTOGRAM_AMOUNT_SHIFT;
	struct histogram scaled = *histogram;

	scaled.max_ns = (histogram->max_ns < most ? histogram->max_ns : most)
			<< HISTOGRAM_AMOUNT_SHIFT;
	return histogram_quantile_ns(&scaled, permille) >> HISTOGRAM_AMOUNT_SHIFT;
}

void histogram_split_sum(const struct histogram *histogram, int permille,
			 int64_t parts_ns[SPLIT_PARTS])
{
	int64_t left = (int64_t)(((__int128)histogram_count(histogram) * permille + 999) / 1000);

	for (int part = 0; part < SPLIT_PARTS; part++)
		parts_ns[part] = 0;
	for (int i = HISTOGRAM_BUCKETS - 1; i >= 0 && left > 0; i--) {
		int64_t here = histogram->buckets[i], taken = here < left ? here : left;

		for (int part = 0; here && part < SPLIT_PARTS; part++)
			parts_ns[part] += (int64_t)((__int128)histogram->split->parts_ns[i][part] *
						    taken / here);
		left -= taken;
	}
}
