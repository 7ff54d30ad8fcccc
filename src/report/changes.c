/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/changes.h"
#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define CHANCE_MOST 0.002    /* that chance alone makes any difference of a report */
#define SHARE_LEAST 0.02     /* of all time: what a difference has at least */
#define CONTRAST_LEAST 0.15  /* of the set's own time; two runs of one program differ by less */
#define SAMPLES_LEAST 30     /* of a set, on one side */
#define TERM_FACTOR 0.85     /* how much more a set must say for another column */
#define EVERYWHERE_LEAST 0.9 /* share of all time, on both sides */
#define LEFT_LEAST 0.75	     /* share of a set that other changes leave */
#define ALSO_LEAST 0.9	     /* share of a difference that a value carries to be named beside it */
#define LONGER_LEAST 1.4     /* how much more longer blocks vary than chance would have it */
#define GROWTH_FACTOR 1.25   /* threads that wait more compute less: the former is told first */

#define PROGRAMS_LEAST 3	 /* that can tell more work from a change of one of them */
#define PROGRAM_CPU_LEAST 0.01	 /* of the CPU time, for a program to be one of these */
#define WORK_SAME 1.25		 /* less is the same work */
#define WORK_MOST 4.0		 /* more is another workload */
#define COMMON_LEAST (1.0 / 3.0) /* of the time of both sides, by programs that are on both */

/* Collecting ------------------------------------------------------------------------------------
 */

void changes_add(struct changes *changes, enum change_side side, const uint32_t *values, int64_t us,
		 int64_t samples, int64_t waits, int64_t age_us)
{
	size_t bytes = changes->column_count * sizeof(*values);
	struct change_row *row =
		keyed_put(&changes->rows, sizeof(*row), hash_bytes(values, bytes), NULL);

	memcpy(row->values, values, bytes);
	row->us[side][changes->slices[side].count] += (float)us;
	row->samples[side] += samples;
	row->waits[side] += waits;
	row->age_us[side] += age_us;
}

/* Makes one slice of each two. */
static void slices_merge(struct changes *changes, enum change_side side)
{
	struct change_slices *slices = &changes->slices[side];
	struct change_row *rows = changes->rows.rows;

	slices->count /= 2;
	for (size_t i = 0; i < CHANGE_SLICES_MAX; i++) {
		bool kept = i < slices->count;

		slices->elapsed_us[i] =
			kept ? slices->elapsed_us[2 * i] + slices->elapsed_us[2 * i + 1] : 0;
		for (size_t row = 0; row < changes->rows.count; row++) {
			float *us = rows[row].us[side];

			us[i] = kept ? us[2 * i] + us[2 * i + 1] : 0;
		}
	}
	slices->merged *= 2;
}

void changes_end_slice(struct changes *changes, enum change_side side, int64_t elapsed_us)
{
	struct change_slices *slices = &changes->slices[side];

	slices->merged += !slices->merged;
	slices->elapsed_us[slices->count++] = elapsed_us;
	if (slices->count == CHANGE_SLICES_MAX)
		slices_merge(changes, side);
}

void changes_done(struct changes *changes)
{
	keyed_done(&changes->rows);
	text_done(&changes->refused);
}

/* Statistics ------------------------------------------------------------------------------------
 */

/* A rate as the slices have it: threads on average. */
struct rate {
	double mean, variance, freedom; /* variance of the mean; its degrees of freedom */
};

/* Variance of a ratio of sums, from slices that are merged `each` at a time. */
static double slices_variance(const double *us, const int64_t *elapsed_us, size_t count,
			      size_t each, double mean, double *freedom)
{
	size_t blocks = count / each;
	double squares = 0, all = 0;

	for (size_t block = 0; block < blocks; block++) {
		double had = 0, elapsed = 0;

		for (size_t i = block * each; i < (block + 1) * each; i++) {
			had += us[i];
			elapsed += (double)elapsed_us[i];
		}
		squares += (had - mean * elapsed) * (had - mean * elapsed);
		all += elapsed;
	}
	*freedom = (double)blocks - 1;
	return squares * (double)blocks / *freedom / (all * all);
}

static double rate_mean(const double *us, const struct change_slices *slices)
{
	double had = 0, elapsed = 0;

	for (size_t i = 0; i < slices->count; i++) {
		had += us[i];
		elapsed += (double)slices->elapsed_us[i];
	}
	return had / elapsed;
}

/* Finds the rates of both sides. Neighbouring slices are alike where waits are long: longer blocks
 * then vary more than chance would have it, and are right. There are fewer of them, so by chance
 * alone they seem to vary more, or less. */
static void rates_find(struct rate rates[SIDE_COUNT], double us[][CHANGE_SLICES_MAX],
		       const struct change_slices *slices)
{
	double most = 0;

	for (int side = 0; side < SIDE_COUNT; side++)
		rates[side].mean = rate_mean(us[side], &slices[side]);
	for (size_t each = 1; slices[SIDE_BEFORE].count / each >= CHANGE_SLICES_LEAST &&
			      slices[SIDE_AFTER].count / each >= CHANGE_SLICES_LEAST;
	     each *= 2) {
		struct rate longer[SIDE_COUNT];

		for (int side = 0; side < SIDE_COUNT; side++) {
			longer[side].mean = rates[side].mean;
			longer[side].variance = slices_variance(
				us[side], slices[side].elapsed_us, slices[side].count, each,
				rates[side].mean, &longer[side].freedom);
		}
		if (each > 1 && longer[SIDE_BEFORE].variance + longer[SIDE_AFTER].variance <=
					most * LONGER_LEAST)
			continue;
		memcpy(rates, longer, sizeof(longer));
		most = rates[SIDE_BEFORE].variance + rates[SIDE_AFTER].variance;
	}
}

/* The chance that Student's t is at least that far from 0: the incomplete beta function
 * I_x(freedom/2, 1/2) with x = freedom / (freedom + t*t), as a continued fraction (Abramowitz and
 * Stegun 26.5.8, 26.7.1), which converges fast for x below (a+1)/(a+b+2); above it, its complement
 * does. */
static double beta_fraction(double a, double b, double x)
{
	double c = 1, d = 1 / (1 - (a + b) * x / (a + 1)), value = d;

	for (int m = 1; m < 200; m++) {
		double step = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));

		d = 1 / (1 + step * d);
		c = 1 + step / c;
		value *= d * c;
		step = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		d = 1 / (1 + step * d);
		c = 1 + step / c;
		value *= d * c;
		if (fabs(d * c - 1) < 1e-10)
			break;
	}
	return value;
}

static double student_chance(double t, double freedom)
{
	double a = freedom / 2, b = 0.5, x = freedom / (freedom + t * t), front;

	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1 - x));
	return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
					 : 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/* A difference of two rates: its standard error, and degrees of freedom (Welch). */
static double error_of(const struct rate *before, const struct rate *after, double *freedom)
{
	double both = before->variance + after->variance;

	*freedom = both > 0 ? both * both /
				      (before->variance * before->variance / before->freedom +
				       after->variance * after->variance / after->freedom)
			    : before->freedom + after->freedom;
	return sqrt(both);
}

/* Search ----------------------------------------------------------------------------------------
 */

/* A row of the search: values that too little time has are 0. */
struct cell {
	uint32_t values[CHANGE_COLUMNS_MAX];
	double us[SIDE_COUNT][CHANGE_SLICES_MAX], all_us[SIDE_COUNT];
	int64_t samples[SIDE_COUNT], waits[SIDE_COUNT], age_us[SIDE_COUNT];
	bool covered; /* by a change that was found */
};

struct candidate {
	struct change_term terms[CHANGE_TERMS_MAX];
	size_t term_count;
	uint64_t members; /* sum of hashes of its cells: sets with the same one are the same */
	double us[SIDE_COUNT];
	int64_t samples[SIDE_COUNT];
	double score; /* 0: it is out */
};

struct search {
	struct changes *changes;
	struct keyed cells; /* struct cell */
	double elapsed_us[SIDE_COUNT];
	double least; /* threads that a difference must have */
	/* the value of each column that nearly all time has: it says nothing beside others; 0: none
	 */
	uint32_t everywhere[CHANGE_COLUMNS_MAX];
	struct candidate *candidates;
	size_t count, capacity;
	struct index members;
};

static double threads_of(const struct search *search, enum change_side side, double us)
{
	return us / search->elapsed_us[side];
}

/* True if so much time is worth a search. */
static bool is_much(const struct search *search, const double *us, const int64_t *samples)
{
	for (int side = 0; side < SIDE_COUNT; side++)
		if (threads_of(search, side, us[side]) >= search->least &&
		    samples[side] >= SAMPLES_LEAST)
			return true;
	return false;
}

/* True if nearly all time has a value. */
static bool is_everywhere(const struct search *search, const double *us)
{
	const struct changes *changes = search->changes;
	double work = changes->normalised ? changes->work : 1;

	return threads_of(search, SIDE_BEFORE, us[SIDE_BEFORE]) >=
		       EVERYWHERE_LEAST * changes->threads[SIDE_BEFORE] &&
	       threads_of(search, SIDE_AFTER, us[SIDE_AFTER]) * work >=
		       EVERYWHERE_LEAST * changes->threads[SIDE_AFTER];
}

static double row_us(const struct change_row *row, enum change_side side)
{
	double us = 0;

	for (size_t i = 0; i < CHANGE_SLICES_MAX; i++)
		us += row->us[side][i];
	return us;
}

/* Makes the cells: rows without the values that have too little time. */
static void cells_make(struct search *search)
{
	struct changes *changes = search->changes;
	struct change_row *rows = changes->rows.rows;
	double scale = changes->normalised ? 1 / changes->work : 1;

	for (size_t column = 0; column < changes->column_count; column++) {
		struct keyed values = {0};

		for (size_t i = 0; i < changes->rows.count; i++) {
			struct candidate *value =
				keyed_put(&values, sizeof(*value), rows[i].values[column], NULL);

			for (int side = 0; side < SIDE_COUNT; side++) {
				value->us[side] +=
					row_us(&rows[i], side) * (side == SIDE_AFTER ? scale : 1);
				value->samples[side] += rows[i].samples[side];
			}
		}
		for (size_t i = 0; i < changes->rows.count; i++) {
			const struct candidate *value =
				keyed_find(&values, sizeof(*value), rows[i].values[column]);

			if (!is_much(search, value->us, value->samples))
				rows[i].values[column] = 0;
			else if (is_everywhere(search, value->us))
				search->everywhere[column] = rows[i].values[column];
		}
		keyed_done(&values);
	}
	for (size_t i = 0; i < changes->rows.count; i++) {
		size_t bytes = changes->column_count * sizeof(*rows[i].values);
		struct cell *cell = keyed_put(&search->cells, sizeof(*cell),
					      hash_bytes(rows[i].values, bytes), NULL);

		memcpy(cell->values, rows[i].values, bytes);
		for (int side = 0; side < SIDE_COUNT; side++) {
			for (size_t slice = 0; slice < CHANGE_SLICES_MAX; slice++) {
				double us =
					rows[i].us[side][slice] * (side == SIDE_AFTER ? scale : 1);

				cell->us[side][slice] += us;
				cell->all_us[side] += us;
			}
			cell->samples[side] += rows[i].samples[side];
			cell->waits[side] += rows[i].waits[side];
			cell->age_us[side] += rows[i].age_us[side];
		}
	}
}

/* Adds the sets of values of these columns. */
static void columns_search(struct search *search, const size_t *columns, size_t count)
{
	const struct cell *cells = search->cells.rows;
	struct keyed sets = {0};

	for (size_t i = 0; i < search->cells.count; i++) {
		uint32_t values[CHANGE_TERMS_MAX];
		struct candidate *set;
		bool lacks = false, added;

		for (size_t at = 0; at < count; at++) {
			values[at] = cells[i].values[columns[at]];
			lacks |= !values[at] ||
				 (count > 1 && values[at] == search->everywhere[columns[at]]);
		}
		if (lacks)
			continue;
		set = keyed_put(&sets, sizeof(*set), hash_bytes(values, count * sizeof(*values)),
				&added);
		for (size_t at = 0; added && at < count; at++)
			set->terms[set->term_count++] =
				(struct change_term){columns[at], values[at]};
		set->members += hash_u64(i + 1);
		for (int side = 0; side < SIDE_COUNT; side++) {
			set->us[side] += cells[i].all_us[side];
			set->samples[side] += cells[i].samples[side];
		}
	}
	for (size_t i = 0; i < sets.count; i++) {
		const struct candidate *set = (const struct candidate *)sets.rows + i;
		bool added;

		if (!is_much(search, set->us, set->samples))
			continue;
		index_put(&search->members, set->members, &added);
		if (!added)
			continue;
		search->candidates = memory_grow(search->candidates, &search->capacity,
						 search->count + 1, sizeof(*set));
		search->candidates[search->count++] = *set;
	}
	keyed_done(&sets);
}

/* Adds all sets, those of few columns first: another set of the same rows is none. */
static void candidates_make(struct search *search)
{
	size_t columns[CHANGE_TERMS_MAX], count = search->changes->column_count;

	for (columns[0] = 0; columns[0] < count; columns[0]++)
		columns_search(search, columns, 1);
	for (columns[0] = 0; columns[0] < count; columns[0]++)
		for (columns[1] = columns[0] + 1; columns[1] < count; columns[1]++)
			columns_search(search, columns, 2);
	for (columns[0] = 0; columns[0] < count; columns[0]++)
		for (columns[1] = columns[0] + 1; columns[1] < count; columns[1]++)
			for (columns[2] = columns[1] + 1; columns[2] < count; columns[2]++)
				columns_search(search, columns, 3);
}

static bool set_has(const struct candidate *set, const struct cell *cell)
{
	for (size_t i = 0; i < set->term_count; i++)
		if (cell->values[set->terms[i].column] != set->terms[i].value)
			return false;
	return true;
}

/* True if the cell is one of the set, and of no change that was found. */
static bool set_has_left(const struct candidate *set, const struct cell *cell)
{
	return !cell->covered && set_has(set, cell);
}

/* Finds what of a set is not covered yet, and how much that says. */
static void candidate_rate(struct search *search, struct candidate *set)
{
	const struct cell *cells = search->cells.rows;
	double before, after, most, difference, all_us = 0;

	memset(set->us, 0, sizeof(set->us));
	memset(set->samples, 0, sizeof(set->samples));
	set->score = 0;
	for (size_t i = 0; i < search->cells.count; i++) {
		if (!set_has(set, &cells[i]))
			continue;
		for (int side = 0; side < SIDE_COUNT; side++) {
			all_us += cells[i].all_us[side];
			if (cells[i].covered)
				continue;
			set->us[side] += cells[i].all_us[side];
			set->samples[side] += cells[i].samples[side];
		}
	}
	before = threads_of(search, SIDE_BEFORE, set->us[SIDE_BEFORE]);
	after = threads_of(search, SIDE_AFTER, set->us[SIDE_AFTER]);
	most = before > after ? before : after;
	difference = fabs(after - before);
	/* the name of a set that is mostly told already would say something else */
	if (set->us[SIDE_BEFORE] + set->us[SIDE_AFTER] < LEFT_LEAST * all_us ||
	    difference < search->least || difference < CONTRAST_LEAST * most ||
	    !is_much(search, set->us, set->samples))
		return;
	set->score = difference * difference / most;
	for (size_t i = 1; i < set->term_count; i++)
		set->score *= TERM_FACTOR;
}

/* Fills a change with the times of a set. False: chance may have made the difference. */
static bool change_fill(struct search *search, const struct candidate *set, struct change *change)
{
	const struct cell *cells = search->cells.rows;
	double us[SIDE_COUNT][CHANGE_SLICES_MAX] = {{0}}, freedom, error, common;
	int64_t waits[SIDE_COUNT] = {0}, age_us[SIDE_COUNT] = {0};
	struct rate rates[SIDE_COUNT] = {{0}};

	*change = (struct change){.term_count = set->term_count};
	memcpy(change->terms, set->terms, sizeof(change->terms));
	for (size_t i = 0; i < search->cells.count; i++) {
		if (!set_has_left(set, &cells[i]))
			continue;
		for (int side = 0; side < SIDE_COUNT; side++) {
			for (size_t slice = 0; slice < CHANGE_SLICES_MAX; slice++)
				us[side][slice] += cells[i].us[side][slice];
			waits[side] += cells[i].waits[side];
			age_us[side] += cells[i].age_us[side];
		}
	}
	rates_find(rates, us, search->changes->slices);
	for (int side = 0; side < SIDE_COUNT; side++) {
		change->threads[side] = rates[side].mean;
		change->samples[side] = set->samples[side];
		if (waits[side] * 2 > set->samples[side])
			change->age_us[side] = (double)age_us[side] / (double)waits[side];
	}
	/* what is on one side alone differs, however much work was done */
	common = change->threads[change->threads[SIDE_AFTER] < change->threads[SIDE_BEFORE]];
	common *= search->changes->normalised ? search->changes->work_error : 0;
	rates[SIDE_AFTER].variance += common * common;
	error = error_of(&rates[SIDE_BEFORE], &rates[SIDE_AFTER], &freedom);
	/* the quantile of t for 95 %, to 1 % from 5 degrees of freedom on */
	change->error = error * (1.96 + 2.37 / freedom + 2.82 / (freedom * freedom));
	return error <= 0 || student_chance(fabs(change_difference(change)) / error, freedom) *
					     (double)search->count <
				     CHANCE_MOST;
}

static bool term_is_everywhere(const struct search *search, const struct change_term *term)
{
	return term->value == search->everywhere[term->column];
}

/* Adds what else nearly all of a set's difference has in common. */
static void also_fill(const struct search *search, const struct candidate *set,
		      struct change *change)
{
	const struct cell *cells = search->cells.rows;
	bool of_all = term_is_everywhere(search, &set->terms[0]);

	for (size_t column = 0; column < search->changes->column_count; column++) {
		struct change_term most = {column, 0};
		struct keyed values = {0};
		bool named = false;

		for (size_t i = 0; i < set->term_count; i++)
			named |= set->terms[i].column == column;
		if (named || change->also_count == CHANGE_ALSO_MAX)
			continue;
		for (size_t i = 0; i < search->cells.count; i++) {
			struct candidate *value;

			if (!set_has_left(set, &cells[i]))
				continue;
			value = keyed_put(&values, sizeof(*value), cells[i].values[column], NULL);
			for (int side = 0; side < SIDE_COUNT; side++)
				value->us[side] += cells[i].all_us[side];
			value->terms[0] = (struct change_term){column, cells[i].values[column]};
		}
		for (size_t i = 0; i < values.count; i++) {
			const struct candidate *value = (const struct candidate *)values.rows + i;
			double difference = threads_of(search, SIDE_AFTER, value->us[SIDE_AFTER]) -
					    threads_of(search, SIDE_BEFORE, value->us[SIDE_BEFORE]);

			if (difference / change_difference(change) >= ALSO_LEAST &&
			    (of_all || !term_is_everywhere(search, &value->terms[0])))
				most.value = value->terms[0].value;
		}
		keyed_done(&values);
		if (most.value)
			change->also[change->also_count++] = most;
	}
}

/* Finds the best set of what is not covered; NULL: no other difference is clear. */
static struct candidate *best_find(struct search *search, struct change *change)
{
	for (size_t i = 0; i < search->count; i++)
		candidate_rate(search, &search->candidates[i]);
	for (;;) {
		struct candidate *best = NULL;

		for (size_t i = 0; i < search->count; i++)
			if (search->candidates[i].score > (best ? best->score : 0))
				best = &search->candidates[i];
		if (!best || change_fill(search, best, change))
			return best;
		best->score = 0;
	}
}

static int change_compare(const void *a, const void *b)
{
	double x = change_difference(a), y = change_difference(b);

	x = x > 0 ? x * GROWTH_FACTOR : -x;
	y = y > 0 ? y * GROWTH_FACTOR : -y;
	return x < y ? 1 : x > y ? -1 : 0;
}

static void sets_find(struct search *search)
{
	struct changes *changes = search->changes;
	struct change change;
	struct candidate *best;

	while ((best = best_find(search, &change))) {
		struct cell *cells = search->cells.rows;

		if (changes->count == CHANGES_MAX) {
			changes->more++;
			break;
		}
		also_fill(search, best, &change);
		changes->found[changes->count++] = change;
		for (size_t i = 0; i < search->cells.count; i++)
			cells[i].covered |= set_has(best, &cells[i]);
	}
	qsort(changes->found, changes->count, sizeof(*changes->found), change_compare);
}

/* How much work was done ------------------------------------------------------------------------
 */

struct program {
	double us[SIDE_COUNT], cpu_us[SIDE_COUNT];
};

static int double_compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* True if that much more or less work is not the same work. */
static bool work_differs(double ratio)
{
	return ratio > WORK_SAME || ratio * WORK_SAME < 1;
}

/* Finds the work from CPU time: the median of what programs used of it, after against before. A
 * change of one program, or a new one, does not move the median of many; more requests move all,
 * and so also the sum of these programs, which is less a matter of chance. */
static void work_find(struct changes *changes, const struct keyed *programs, const double *elapsed)
{
	const struct program *rows = programs->rows;
	double *ratios = memory_get((programs->count + 1) * sizeof(*ratios));
	double cpu_us[SIDE_COUNT] = {0}, common_us[SIDE_COUNT] = {0}, all, least;
	size_t count = 0;

	for (size_t i = 0; i < programs->count; i++)
		for (int side = 0; side < SIDE_COUNT; side++)
			cpu_us[side] += rows[i].cpu_us[side];
	for (size_t i = 0; i < programs->count; i++) {
		const double *us = rows[i].cpu_us;

		if (us[SIDE_BEFORE] <= 0 || us[SIDE_AFTER] <= 0 ||
		    us[SIDE_BEFORE] < PROGRAM_CPU_LEAST * cpu_us[SIDE_BEFORE] ||
		    us[SIDE_AFTER] < PROGRAM_CPU_LEAST * cpu_us[SIDE_AFTER])
			continue;
		ratios[count++] = us[SIDE_AFTER] / elapsed[SIDE_AFTER] /
				  (us[SIDE_BEFORE] / elapsed[SIDE_BEFORE]);
		for (int side = 0; side < SIDE_COUNT; side++)
			common_us[side] += us[side];
	}
	changes->programs = count;
	if (count >= PROGRAMS_LEAST) {
		qsort(ratios, count, sizeof(*ratios), double_compare);
		changes->work = (ratios[(count - 1) / 2] + ratios[count / 2]) / 2;
		/* a median, by the quartiles of what is nearly a normal distribution */
		changes->work_error = (ratios[count * 3 / 4] - ratios[count / 4]) / 1.35 * 1.25 /
				      sqrt((double)count) / changes->work;
		all = common_us[SIDE_AFTER] / elapsed[SIDE_AFTER] /
		      (common_us[SIDE_BEFORE] / elapsed[SIDE_BEFORE]);
		/* programs of which a quarter does not do so tell nothing */
		least = changes->work > 1 ? ratios[count / 4] : ratios[count * 3 / 4];
		changes->normalised = work_differs(least) && work_differs(all) &&
				      (changes->work > 1) == (least > 1) &&
				      (changes->work > 1) == (all > 1);
	}
	free(ratios);
}

/* Adds up the programs, whose number is 0 where it is not known. */
static void programs_find(const struct changes *changes, struct keyed *programs)
{
	const struct change_row *rows = changes->rows.rows;

	for (size_t i = 0; i < changes->rows.count; i++) {
		struct program *program = keyed_put(programs, sizeof(*program),
						    rows[i].values[changes->program_column], NULL);
		bool on = rows[i].values[changes->state_column] == changes->on_value;

		for (int side = 0; side < SIDE_COUNT; side++) {
			program->us[side] += row_us(&rows[i], side);
			program->cpu_us[side] += on ? row_us(&rows[i], side) : 0;
		}
	}
}

/* Fills in why the two can't be compared, if so. */
static void work_check(struct changes *changes, const struct keyed *programs)
{
	const struct program *rows = programs->rows;
	double all[SIDE_COUNT] = {0}, common[SIDE_COUNT] = {0}, shares[SIDE_COUNT];

	for (size_t i = 0; i < programs->count; i++)
		for (int side = 0; side < SIDE_COUNT; side++) {
			all[side] += rows[i].us[side];
			common[side] += rows[i].us[!side] > 0 ? rows[i].us[side] : 0;
		}
	for (int side = 0; side < SIDE_COUNT; side++)
		shares[side] = all[side] > 0 ? common[side] / all[side] : 1;
	if (shares[SIDE_BEFORE] < COMMON_LEAST && shares[SIDE_AFTER] < COMMON_LEAST)
		text_add_format(&changes->refused,
				"other programs ran: those that are in both have %.0f %% of the "
				"time before, and %.0f %% of the time after",
				100 * shares[SIDE_BEFORE], 100 * shares[SIDE_AFTER]);
	else if (changes->normalised &&
		 (changes->work > WORK_MOST || changes->work * WORK_MOST < 1))
		text_add_format(&changes->refused,
				"the workloads differ too much: the median of %zu programs used "
				"%.3g times as much CPU time per second as before (at most %g, at "
				"least %g, can be compared)",
				changes->programs, changes->work, WORK_MOST, 1 / WORK_MOST);
}

/* Adds the last slice to the one before if it is short: it would vary more than the others. */
static void slices_end(struct changes *changes, enum change_side side)
{
	struct change_slices *slices = &changes->slices[side];
	struct change_row *rows = changes->rows.rows;
	size_t last = slices->count - 1;

	if (slices->count < 2 || slices->elapsed_us[last] * 2 >= slices->elapsed_us[last - 1])
		return;
	slices->elapsed_us[last - 1] += slices->elapsed_us[last];
	for (size_t i = 0; i < changes->rows.count; i++) {
		rows[i].us[side][last - 1] += rows[i].us[side][last];
		rows[i].us[side][last] = 0;
	}
	slices->count--;
}

void changes_find(struct changes *changes)
{
	struct search search = {.changes = changes};
	struct keyed programs = {0};
	const struct change_row *rows = changes->rows.rows;
	const char *const names[SIDE_COUNT] = {"before", "after"};

	for (int side = 0; side < SIDE_COUNT; side++) {
		slices_end(changes, side);
		for (size_t i = 0; i < changes->slices[side].count; i++)
			search.elapsed_us[side] += (double)changes->slices[side].elapsed_us[i];
		if (changes->slices[side].count >= CHANGE_SLICES_LEAST || changes->refused.length)
			continue;
		text_add_format(&changes->refused,
				"the time %s is too short: %.3g s of samples, of which at least "
				"%d scans are needed",
				names[side], search.elapsed_us[side] / 1e6,
				10 * CHANGE_SLICES_LEAST);
	}
	if (changes->refused.length)
		return;
	for (size_t i = 0; i < changes->rows.count; i++)
		for (int side = 0; side < SIDE_COUNT; side++)
			changes->threads[side] += row_us(&rows[i], side) / search.elapsed_us[side];
	programs_find(changes, &programs);
	work_find(changes, &programs, search.elapsed_us);
	work_check(changes, &programs);
	keyed_done(&programs);
	if (changes->refused.length)
		return;
	search.least = changes->threads[SIDE_AFTER] / (changes->normalised ? changes->work : 1);
	if (changes->threads[SIDE_BEFORE] > search.least)
		search.least = changes->threads[SIDE_BEFORE];
	search.least *= SHARE_LEAST;
	cells_make(&search);
	candidates_make(&search);
	changes->searched = search.count;
	sets_find(&search);
	keyed_done(&search.cells);
	index_clear(&search.members);
	free(search.candidates);
}

bool change_waits(const struct change *change, double *longer, double *oftener)
{
	const double *age = change->age_us;

	if (age[SIDE_BEFORE] <= 0 || age[SIDE_AFTER] <= 0 || change_lacks(change, SIDE_BEFORE) ||
	    change_lacks(change, SIDE_AFTER))
		return false;
	*longer = age[SIDE_AFTER] / age[SIDE_BEFORE];
	*oftener = change->threads[SIDE_AFTER] / change->threads[SIDE_BEFORE] / *longer;
	return true;
}
