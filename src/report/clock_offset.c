/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/clock_offset.h"
#include "base/memory.h"

#include <stdlib.h>

#define BIN_US 1000 /* differences are counted so finely at first */
#define BINS (2 * CLOCK_OFFSET_MAX_US / BIN_US)
#define SAME_US 1000  /* begins of one state, by two scans, differ by less */
#define SLACK_US 2000 /* a match by the coarse difference may be off by so much */
#define PAIRS_MIN 10
#define TAIL 50 /* 1/TAIL of the pairs may contradict a bound: the kernel's times are rounded */
/* A pair that contradicts a difference counts as much as so many that agree, as most differences
 * are contradicted by few: states are shorter than the time between waits. */
#define CONTRADICTION 8

void seen_spans_add(struct seen_spans *spans, int64_t from_us, int64_t seen_us, size_t most)
{
	struct seen_span *last = spans->count ? &spans->spans[spans->count - 1] : NULL;

	if (last && llabs(from_us - last->from_us) < SAME_US) {
		if (last->to_us < seen_us)
			last->to_us = seen_us;
		return;
	}
	/* a clock that was set back, or another thread on the same connection */
	if ((last && from_us < last->from_us) || spans->count == most)
		return;
	spans->spans = memory_grow(spans->spans, &spans->capacity, spans->count + 1, sizeof(*last));
	spans->spans[spans->count++] = (struct seen_span){from_us, seen_us};
}

void seen_spans_done(struct seen_spans *spans)
{
	free(spans->spans);
	*spans = (struct seen_spans){0};
}

/* Counts of differences, a bin each, as the steps from one bin to the next. */
struct score {
	int32_t *steps;
	size_t first, last; /* bins that something was counted in */
};

/* Adds to all differences from low_us on and before high_us. */
static void score_add(struct score *score, int64_t low_us, int64_t high_us, int32_t points)
{
	int64_t low = (low_us + CLOCK_OFFSET_MAX_US) / BIN_US;
	int64_t high = (high_us + CLOCK_OFFSET_MAX_US) / BIN_US + 1;

	if (low_us < -CLOCK_OFFSET_MAX_US || high_us >= CLOCK_OFFSET_MAX_US)
		return;
	score->steps[low] += points;
	score->steps[high] -= points;
	if (score->first > (size_t)low)
		score->first = (size_t)low;
	if (score->last < (size_t)high)
		score->last = (size_t)high;
}

/* Adds a pair: differences by which the state began within the wait, as far as that was seen, are
 * more likely, and those by which the wait began within the state are not possible. */
static void pair_add(struct score *score, const struct seen_span *wait,
		     const struct seen_span *serving)
{
	score_add(score, serving->from_us - wait->to_us, serving->from_us - wait->from_us, 1);
	score_add(score, serving->from_us - wait->from_us + BIN_US, serving->to_us - wait->from_us,
		  -CONTRADICTION);
}

/* The bin of the best difference. BINS: too few pairs agree with it, or another one, not next to
 * it, is at least half as good. */
static size_t score_best(const struct score *score)
{
	int64_t now = 0, best = 0;
	size_t found = BINS, alike = 0;
	bool before = false, within = false;

	for (size_t at = score->first; at <= score->last; at++) {
		now += score->steps[at];
		if (now > best) {
			best = now;
			found = at;
		}
	}
	if (best < PAIRS_MIN)
		return BINS;
	now = 0;
	for (size_t at = score->first; at <= score->last; at++, before = within) {
		now += score->steps[at];
		/* one that is left for good, not for a moment */
		within = within ? now * 4 >= best : now * 2 >= best;
		alike += within && !before;
	}
	return alike == 1 ? found : BINS;
}

/* Bounds that pairs give: values of which the lowest, or the highest, counts. */
struct bounds {
	int64_t *values;
	size_t count, capacity;
};

static void bound_add(struct bounds *bounds, int64_t value)
{
	bounds->values =
		memory_grow(bounds->values, &bounds->capacity, bounds->count + 1, sizeof(value));
	bounds->values[bounds->count++] = value;
}

static int numbers_compare(const void *a, const void *b)
{
	const int64_t *one = a, *other = b;

	return (*one > *other) - (*one < *other);
}

static void bounds_sort(struct bounds *bounds)
{
	if (bounds->count)
		qsort(bounds->values, bounds->count, sizeof(*bounds->values), numbers_compare);
}

/* Adds the bounds of a connection, given a difference that is about right. */
static void bounds_of(const struct connection_times *times, int64_t about_us, struct bounds *high,
		      struct bounds *low)
{
	const struct seen_spans *waits = &times->waits;
	size_t at = 0;

	for (size_t i = 0; i < times->servings.count && waits->count; i++) {
		const struct seen_span *serving = &times->servings.spans[i];
		int64_t began_us = serving->from_us - about_us + SLACK_US;

		while (at + 1 < waits->count && waits->spans[at + 1].from_us <= began_us)
			at++;
		if (waits->spans[at].from_us > began_us ||
		    began_us > waits->spans[at].to_us + SLACK_US)
			continue;
		bound_add(high, serving->from_us - waits->spans[at].from_us);
		if (at + 1 < waits->count)
			bound_add(low, serving->to_us - waits->spans[at + 1].from_us);
	}
}

static void offset_refine(const struct connection_times *const *connections, size_t count,
			  int64_t about_us, struct clock_offset *offset)
{
	struct bounds high = {0}, low = {0};

	for (size_t i = 0; i < count; i++)
		bounds_of(connections[i], about_us, &high, &low);
	bounds_sort(&high);
	bounds_sort(&low);
	*offset = (struct clock_offset){.us = about_us, .pairs = high.count};
	/* threads begin to work on a request soon, so the upper bound is the close one */
	if (high.count)
		offset->us = high.values[high.count / TAIL];
	offset->high_us = offset->low_us = offset->us;
	if (low.count && low.values[low.count - 1 - low.count / TAIL] < offset->us)
		offset->low_us = low.values[low.count - 1 - low.count / TAIL];
	free(high.values);
	free(low.values);
}

bool clock_offset_find(const struct connection_times *const *connections, size_t count,
		       struct clock_offset *offset)
{
	struct score score = {.first = BINS};
	size_t best;

	score.steps = memory_get((BINS + 2) * sizeof(*score.steps));
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < connections[i]->servings.count; j++)
			for (size_t k = 0; k < connections[i]->waits.count; k++)
				pair_add(&score, &connections[i]->waits.spans[k],
					 &connections[i]->servings.spans[j]);
	best = score.first == BINS ? BINS : score_best(&score);
	free(score.steps);
	if (best == BINS)
		return false;
	offset_refine(connections, count, (int64_t)best * BIN_US - CLOCK_OFFSET_MAX_US, offset);
	return offset->pairs >= PAIRS_MIN;
}
