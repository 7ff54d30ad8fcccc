/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/distribution.h"
#include "report/value.h"
#include "sample/proc_values.h"
#include "sample/wait_rule.h"
#include "base/memory.h"
#include "base/names.h"

#include <stdlib.h>
#include <string.h>

/* Values of a distribution beside its keys. */
struct reported {
	int64_t until_us, elapsed_us;
	const char *trace;
	int64_t count, errors, total_ns, p50_ns, p90_ns, p99_ns, p999_ns, max_ns;
	int64_t bytes, throttled_ns;
	int64_t sum, p50, p90, p99, p999, max, below;	     /* of numbers */
	int64_t idle, parts[SPLIT_PARTS], tail[SPLIT_PARTS]; /* per mille */
	const char *slept;
	const char *buckets;
};

#define AT(member) offsetof(struct reported, member)

static const struct column interval_columns[] = {
	{"timestamp", "", "", KIND_TIME, ROLE_MEASURE, 0, 0, AT(until_us)},
	{"elapsed_us", "", "", KIND_NUMBER, ROLE_MEASURE, 0, 0, AT(elapsed_us)},
	{"trace", "", "", KIND_TEXT, ROLE_MEASURE, 0, 0, AT(trace)},
};

static const struct column reported_columns[] = {
	{"count", "COUNT", "", KIND_NUMBER, ROLE_MEASURE, 0, 5, AT(count)},
	{"errors", "ERRORS", "", KIND_NUMBER, ROLE_MEASURE, 0, 6, AT(errors)},
	{"total_ns", "TOTAL", "", KIND_NS, ROLE_MEASURE, 0, 7, AT(total_ns)},
	{"p50_ns", "P50", "", KIND_NS, ROLE_MEASURE, 0, 7, AT(p50_ns)},
	{"p90_ns", "P90", "", KIND_NS, ROLE_MEASURE, 0, 7, AT(p90_ns)},
	{"p99_ns", "P99", "", KIND_NS, ROLE_MEASURE, 0, 7, AT(p99_ns)},
	{"p999_ns", "P999", "", KIND_NS, ROLE_MEASURE, 0, 7, AT(p999_ns)},
	{"max_ns", "MAX", "", KIND_NS, ROLE_MEASURE, 0, 7, AT(max_ns)},
	{"bytes", "BYTES", "", KIND_NUMBER, ROLE_MEASURE, 0, 7, AT(bytes)},
	{"throttled_ns", "THROTTLED", "", KIND_NS, ROLE_MEASURE, 0, 9, AT(throttled_ns)},
	{"idle_share", "IDLE%", "", KIND_PERMILLE, ROLE_MEASURE, 0, 6, AT(idle)},
	{"cpu_share", "CPU%", "", KIND_PERMILLE, ROLE_MEASURE, 0, 6, AT(parts[0])},
	{"runq_share", "RUNQ%", "", KIND_PERMILLE, ROLE_MEASURE, 0, 6, AT(parts[1])},
	{"disk_share", "DISK%", "", KIND_PERMILLE, ROLE_MEASURE, 0, 6, AT(parts[2])},
	{"sleep_share", "SLEEP%", "", KIND_PERMILLE, ROLE_MEASURE, 0, 6, AT(parts[3])},
	{"tail_cpu_share", "TAIL:CPU%", "", KIND_PERMILLE, ROLE_MEASURE, 0, 9, AT(tail[0])},
	{"tail_runq_share", "RUNQ%", "", KIND_PERMILLE, ROLE_MEASURE, 0, 6, AT(tail[1])},
	{"tail_disk_share", "DISK%", "", KIND_PERMILLE, ROLE_MEASURE, 0, 6, AT(tail[2])},
	{"tail_sleep_share", "SLEEP%", "", KIND_PERMILLE, ROLE_MEASURE, 0, 6, AT(tail[3])},
	{"slept_in", "SLEPT_IN", "", KIND_TEXT, ROLE_MEASURE, 0, 8, AT(slept)},
};

/* Columns of distributions of numbers, in place of those of times. */
static const struct column amount_columns[] = {
	{"value_sum", "SUM", "", KIND_NUMBER, ROLE_MEASURE, 0, 7, AT(sum)},
	{"value_p50", "P50", "", KIND_NUMBER, ROLE_MEASURE, 0, 7, AT(p50)},
	{"value_p90", "P90", "", KIND_NUMBER, ROLE_MEASURE, 0, 7, AT(p90)},
	{"value_p99", "P99", "", KIND_NUMBER, ROLE_MEASURE, 0, 7, AT(p99)},
	{"value_p999", "P999", "", KIND_NUMBER, ROLE_MEASURE, 0, 7, AT(p999)},
	{"value_max", "MAX", "", KIND_NUMBER, ROLE_MEASURE, 0, 7, AT(max)},
	{"value_below", "BELOW0", "", KIND_NUMBER, ROLE_MEASURE, 0, 6, AT(below)},
};

/* Columns that are hidden in some reports, as bits of reported_columns. Wide: hidden in a narrow
 * report. */
#define TOLD_WIDE (1u << 4 | 1u << 6)
#define TOLD_ERRORS (1u << 1)	/* shown for kinds whose events can fail */
#define TOLD_BYTES (1u << 8)	/* shown for kinds whose events move bytes */
#define TOLD_QUOTA (1u << 9)	/* shown where any thread was throttled */
#define TOLD_TIMES (0x3fu << 2) /* total to max: not of numbers, or where events are counted */

/* shown for kinds with idle time before events: that, and what these slept in */
#define TOLD_IDLE (1u << 10 | 1u << 19)
#define TOLD_SPLIT (0xffu << 11) /* shown for kinds whose events consist of parts */
#define TAIL_PERMILLE 10

static const struct column buckets_column = {
	"buckets", "", "", KIND_TEXT, ROLE_MEASURE, 0, 0, AT(buckets),
};

#define INTERVAL_COUNT (sizeof(interval_columns) / sizeof(interval_columns[0]))
#define REPORTED_COUNT (sizeof(reported_columns) / sizeof(reported_columns[0]))
#define AMOUNT_COUNT (sizeof(amount_columns) / sizeof(amount_columns[0]))

static void list_add(struct column_list *list, const struct column *column)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i] == column)
			return;
	if (list->count + INTERVAL_COUNT + REPORTED_COUNT + AMOUNT_COUNT + 1 < COLUMN_LIST_MAX)
		list->items[list->count++] = column;
}

void distribution_table_init(struct distribution_table *table,
			     const struct trace_kind *const *kinds, size_t kind_count,
			     const struct column_list *list)
{
	struct column_list own = {0};
	struct error unsaid = {0};

	*table = (struct distribution_table){.kind_count = kind_count};
	memcpy(table->kinds, kinds, kind_count * sizeof(*kinds));
	for (size_t i = 0; i < list->count; i++)
		if (list->items[i]->role == ROLE_KEY && list->items[i]->kind != KIND_TIME)
			list_add(&table->keys, list->items[i]);
	for (size_t i = 0; i < kind_count; i++) {
		const char *columns = kinds[i]->sums ? kinds[i]->sums : kinds[i]->columns;

		if (columns)
			column_list_add(&own, columns, false, &unsaid);
	}
	for (size_t i = 0; i < own.count; i++)
		list_add(&table->keys, own.items[i]);
	error_done(&unsaid);
}

uint64_t distribution_table_needs(const void *state)
{
	const struct distribution_table *table = state;

	return column_list_needs(&table->keys);
}

static union value *keys_of(const struct distribution_table *table,
			    const struct distribution *distribution)
{
	return table->values + (size_t)(distribution - table->items) * table->keys.count;
}

static bool keys_equal(const struct distribution_table *table,
		       const struct distribution *distribution, const struct sample *who)
{
	const union value *keys = keys_of(table, distribution);

	for (size_t i = 0; i < table->keys.count; i++)
		if (keys[i].number != sample_value(table->keys.items[i], who).number)
			return false;
	return true;
}

static struct distribution *distribution_new(struct distribution_table *table,
					     const struct trace_kind *kind,
					     const struct sample *who, uint64_t next)
{
	const size_t had = table->capacity;
	struct distribution *made;

	if (table->count == DISTRIBUTIONS_MAX)
		return NULL;
	table->items = memory_grow(table->items, &table->capacity, table->count + 1,
				   sizeof(*table->items));
	if (table->capacity > had)
		table->values =
			memory_resize(table->values, table->capacity * table->keys.count + 1,
				      sizeof(*table->values));
	made = &table->items[table->count++];
	*made = (struct distribution){.kind = kind, .next = next};
	for (size_t i = 0; i < table->keys.count; i++)
		keys_of(table, made)[i] = sample_value(table->keys.items[i], who);
	return made;
}

static void split_add(struct distribution *to, const struct histogram_split *split)
{
	if (!to->split)
		to->histogram.split = to->split = memory_get(sizeof(*to->split));
	for (int i = 0; i < HISTOGRAM_BUCKETS; i++)
		for (int part = 0; part < SPLIT_PARTS; part++)
			to->split->parts_ns[i][part] += split->parts_ns[i][part];
	for (int class = 0; class < SPLIT_CLASSES; class ++)
		to->split->slept[class] += split->slept[class];
}

/* Returns the distribution that the histogram was added to; NULL: it was not. */
static struct distribution *histogram_add(struct distribution_table *table,
					  const struct trace_kind *kind, const struct sample *who,
					  const struct histogram *histogram)
{
	uint64_t hash = hash_u64((uintptr_t)kind), *first;
	struct distribution *found = NULL;

	for (size_t i = 0; i < table->keys.count; i++)
		hash = hash_u64(hash ^ (uint64_t)sample_value(table->keys.items[i], who).number);
	first = index_put(&table->by_hash, hash, NULL);
	for (uint64_t at = *first; at && !found; at = table->items[at - 1].next)
		if (table->items[at - 1].kind == kind &&
		    keys_equal(table, &table->items[at - 1], who))
			found = &table->items[at - 1];
	if (!found && !histogram_count(histogram) && !histogram->below)
		return NULL; /* what a piece of work slept in that has not ended */
	if (!found) {
		found = distribution_new(table, kind, who, *first);
		if (found)
			*first = (uint64_t)(found - table->items) + 1;
	}
	if (!found) {
		table->refused += histogram_count(histogram);
		return NULL;
	}
	histogram_merge(&found->histogram, histogram);
	if (histogram->split)
		split_add(found, histogram->split);
	return found;
}

void distribution_table_add(void *to, const struct trace_kind *kind, const struct sample *who,
			    const struct histogram *histogram)
{
	struct distribution *found = histogram_add(to, kind, who, histogram);

	if (found && who->event.error)
		found->errors += histogram_count(histogram);
}

#undef AT
#define AT(member) offsetof(struct recorded_distribution, member)

const struct column recorded_distribution_columns[] = {
	{"timestamp", "", "", KIND_TIME, ROLE_MEASURE, 0, 0, AT(who.scan.time_us)},
	{"trace", "", "", KIND_TEXT, ROLE_MEASURE, 0, 0, AT(trace)},
	{"count", "", "", KIND_NUMBER, ROLE_MEASURE, 0, 0, AT(count)},
	{"errors", "", "", KIND_NUMBER, ROLE_MEASURE, 0, 0, AT(errors)},
	{"total_ns", "", "", KIND_NS, ROLE_MEASURE, 0, 0, AT(total_ns)},
	{"max_ns", "", "", KIND_NS, ROLE_MEASURE, 0, 0, AT(max_ns)},
	{"bytes", "", "", KIND_NUMBER, ROLE_MEASURE, 0, 0, AT(bytes)},
	{"throttled_ns", "", "", KIND_NS, ROLE_MEASURE, 0, 0, AT(throttled_ns)},
	{"value_sum", "", "", KIND_NUMBER, ROLE_MEASURE, 0, 0, AT(sum)},
	{"value_max", "", "", KIND_NUMBER, ROLE_MEASURE, 0, 0, AT(max)},
	{"value_below", "", "", KIND_NUMBER, ROLE_MEASURE, 0, 0, AT(below)},
	{"buckets", "", "", KIND_TEXT, ROLE_MEASURE, 0, 0, AT(buckets)},
};

const size_t recorded_distribution_column_count =
	sizeof(recorded_distribution_columns) / sizeof(recorded_distribution_columns[0]);

/* Reads "64:12 256:3", as buckets_add() writes it. */
static bool buckets_read(const char *text, int shift, int64_t buckets[HISTOGRAM_BUCKETS])
{
	while (text && *text) {
		char *end;
		int64_t low = strtoll(text, &end, 10), count;
		int bucket = 0;

		if (end == text || *end != ':' || low < 0)
			return false;
		count = strtoll(end + 1, &end, 10);
		while (bucket < HISTOGRAM_BUCKETS && histogram_low_ns(bucket) >> shift != low)
			bucket++;
		if (bucket == HISTOGRAM_BUCKETS || count < 1 || (*end && *end != ' '))
			return false;
		buckets[bucket] = sum(buckets[bucket], count);
		text = end + (*end == ' ');
	}
	return true;
}

static int64_t there(int64_t number)
{
	return number > 0 ? number : 0;
}

bool distribution_add_recorded(struct distribution_table *table, const struct trace_kind *kind,
			       const struct recorded_distribution *recorded)
{
	const bool amounts = kind->measure == TRACE_AMOUNT;
	struct histogram histogram = {
		.sum_ns = there(amounts ? recorded->sum : recorded->total_ns),
		.max_ns = there(amounts ? recorded->max : recorded->max_ns),
		.amount = there(kind->quota ? recorded->throttled_ns : recorded->bytes),
		.below = there(recorded->below),
	};
	struct distribution *found;

	if (!buckets_read(recorded->buckets, amounts ? HISTOGRAM_AMOUNT_SHIFT : 0,
			  histogram.buckets))
		return false;
	if (kind->measure == TRACE_COUNT)
		histogram.buckets[0] = there(recorded->count);
	found = histogram_add(table, kind, &recorded->who, &histogram);
	if (found)
		found->errors = sum(found->errors, there(recorded->errors));
	return true;
}

void distribution_add_event(struct distribution_table *table, const struct trace_kind *kind,
			    const struct sample *who, int64_t duration_ns)
{
	struct histogram one = {0};

	if (duration_ns == ABSENT)
		duration_ns = 0;
	one.sum_ns = one.max_ns = duration_ns;
	if (kind->bytes)
		one.amount = who->event.sent + who->event.received;
	one.buckets[histogram_bucket(duration_ns)] = 1;
	distribution_table_add(table, kind, who, &one);
}

static void splits_free(struct distribution_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		free(table->items[i].split);
}

void distribution_table_clear(void *state)
{
	struct distribution_table *table = state;

	index_clear(&table->by_hash);
	splits_free(table);
	table->count = 0;
	table->refused = 0;
}

void distribution_table_done(void *state)
{
	struct distribution_table *table = state;

	index_clear(&table->by_hash);
	splits_free(table);
	free(table->items);
	free(table->values);
	text_done(&table->buckets);
	*table = (struct distribution_table){0};
}

/* Order: by kind, then most time first; equal ones by their keys. */
static int distribution_compare(const void *a, const void *b, void *from)
{
	const struct distribution_table *table = from;
	const struct distribution *x = *(const struct distribution *const *)a;
	const struct distribution *y = *(const struct distribution *const *)b;
	int64_t more = strcmp(x->kind->name, y->kind->name);

	if (!more && x->kind->measure == TRACE_COUNT)
		more = histogram_count(&y->histogram) - histogram_count(&x->histogram);
	if (!more)
		more = (y->histogram.sum_ns > x->histogram.sum_ns) -
		       (y->histogram.sum_ns < x->histogram.sum_ns);
	for (size_t i = 0; !more && i < table->keys.count; i++)
		more = value_compare(table->keys.items[i], keys_of(table, x)[i],
				     keys_of(table, y)[i]);
	return (more > 0) - (more < 0);
}

/* Makes the sorted list of a kind's distributions; kind: NULL for all. */
static size_t order_make(struct distribution_table *table, const struct trace_kind *kind,
			 const struct distribution ***order)
{
	size_t count = 0;

	*order = memory_get((table->count + 1) * sizeof(**order));
	for (size_t i = 0; i < table->count; i++)
		if (!kind || table->items[i].kind == kind)
			(*order)[count++] = &table->items[i];
	qsort_r(*order, count, sizeof(**order), distribution_compare, table);
	return count;
}

/* Fills the shares of what the longest permille consist of; all ABSENT for other kinds. */
static void shares_fill(const struct histogram *histogram, int permille,
			int64_t shares[SPLIT_PARTS])
{
	int64_t parts_ns[SPLIT_PARTS], sum_ns = 0;

	if (histogram->split)
		histogram_split_sum(histogram, permille, parts_ns);
	for (int part = 0; histogram->split && part < SPLIT_PARTS; part++)
		sum_ns += parts_ns[part];
	for (int part = 0; part < SPLIT_PARTS; part++)
		shares[part] = sum_ns ? ratio(parts_ns[part], 1000, sum_ns) : ABSENT;
}

/* Writes how many samples were asleep in which wait class, most first: "lock:12 client:3". */
static const char *slept_write(const struct histogram_split *split)
{
	struct text text = {0};
	const char *name;
	int64_t left[SPLIT_CLASSES];

	if (!split)
		return NULL;
	memcpy(left, split->slept, sizeof(left));
	for (;;) {
		size_t most = 0;

		for (size_t class = 1; class < wait_rule_count; class ++)
			if (left[class] > left[most])
				most = class;
		if (!left[most])
			break;
		text_add_format(&text, "%s%s:%lld", text.length ? " " : "", wait_rules[most].name,
				(long long)left[most]);
		left[most] = 0;
	}
	name = text.length ? name_transient(text_string(&text), text.length) : NULL;
	text_done(&text);
	return name;
}

static struct reported reported_of(const struct distribution *distribution)
{
	const struct histogram *histogram = &distribution->histogram;
	const bool times = distribution->kind->measure == TRACE_TIME;
	const bool amounts = distribution->kind->measure == TRACE_AMOUNT;
	struct reported reported;

	reported = (struct reported){
		.trace = distribution->kind->name,
		.count = histogram_count(histogram),
		.errors = distribution->kind->fails ? distribution->errors : ABSENT,
		.total_ns = times ? histogram->sum_ns : ABSENT,
		.p50_ns = times ? histogram_quantile_ns(histogram, 500) : ABSENT,
		.p90_ns = times ? histogram_quantile_ns(histogram, 900) : ABSENT,
		.p99_ns = times ? histogram_quantile_ns(histogram, 990) : ABSENT,
		.p999_ns = times ? histogram_quantile_ns(histogram, 999) : ABSENT,
		.max_ns = times ? histogram->max_ns : ABSENT,
		.sum = amounts ? histogram->sum_ns : ABSENT,
		.p50 = amounts ? histogram_quantile_amount(histogram, 500) : ABSENT,
		.p90 = amounts ? histogram_quantile_amount(histogram, 900) : ABSENT,
		.p99 = amounts ? histogram_quantile_amount(histogram, 990) : ABSENT,
		.p999 = amounts ? histogram_quantile_amount(histogram, 999) : ABSENT,
		.max = amounts ? histogram->max_ns : ABSENT,
		.below = distribution->kind->below ? histogram->below : ABSENT,
		.bytes = distribution->kind->bytes ? histogram->amount : ABSENT,
		.throttled_ns = distribution->kind->quota ? histogram->amount : ABSENT,
		.idle = distribution->kind->idles ? ratio(histogram->amount, 1000,
							  histogram->amount + histogram->sum_ns)
						  : ABSENT,
	};
	shares_fill(histogram, 1000, reported.parts);
	shares_fill(histogram, TAIL_PERMILLE, reported.tail);
	reported.slept = slept_write(histogram->split);
	return reported;
}

static void row_fill(const struct distribution_table *table, const struct column_list *list,
		     const struct distribution *distribution, const struct reported *reported,
		     union value *row)
{
	const union value *keys = keys_of(table, distribution);

	for (size_t i = 0; i < list->count; i++) {
		if (list->items[i]->role == ROLE_MEASURE) {
			row[i] = column_read(list->items[i], reported);
			continue;
		}
		for (size_t key = 0; key < table->keys.count; key++)
			if (table->keys.items[key] == list->items[i])
				row[i] = keys[key];
	}
}

static bool key_lacking(const struct distribution_table *table,
			const struct distribution *const *order, size_t count, size_t key)
{
	for (size_t i = 0; i < count; i++)
		if (!value_is_absent(table->keys.items[key], keys_of(table, order[i])[key]))
			return false;
	return true;
}

static bool any_throttled(const struct distribution *const *order, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (order[i]->kind->quota && order[i]->histogram.amount > 0)
			return true;
	return false;
}

static bool any_below(const struct distribution *const *order, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (order[i]->histogram.below)
			return true;
	return false;
}

static bool is_stack(const struct column *column)
{
	return !strcmp(column->name, "stack");
}

const char *distribution_stack(const struct distribution_table *table,
			       const struct distribution *distribution)
{
	for (size_t key = 0; distribution->kind->stacks && key < table->keys.count; key++)
		if (is_stack(table->keys.items[key]))
			return keys_of(table, distribution)[key].text;
	return NULL;
}

size_t distribution_grid_fill(struct distribution_table *table, const struct trace_kind *kind,
			      bool narrow, struct grid *grid, const struct distribution ***order)
{
	size_t count = order_make(table, kind, order);
	unsigned int hidden = (narrow ? TOLD_WIDE : 0) | (kind->fails ? 0 : TOLD_ERRORS) |
			      (kind->bytes ? 0 : TOLD_BYTES) | (kind->splits ? 0 : TOLD_SPLIT) |
			      (kind->idles ? 0 : TOLD_IDLE) |
			      (any_throttled(*order, count) ? 0 : TOLD_QUOTA) |
			      (kind->measure == TRACE_TIME ? 0 : TOLD_TIMES);

	table->shown = (struct column_list){0};
	for (size_t i = 0; i < REPORTED_COUNT; i++)
		if (!(hidden >> i & 1))
			table->shown.items[table->shown.count++] = &reported_columns[i];
	for (size_t i = 0; i < AMOUNT_COUNT; i++)
		if (amount_columns[i].offset == AT(below) ? any_below(*order, count)
							  : kind->measure == TRACE_AMOUNT)
			table->shown.items[table->shown.count++] = &amount_columns[i];
	for (size_t key = 0; key < table->keys.count; key++)
		if (!key_lacking(table, *order, count, key) &&
		    !(kind->stacks && is_stack(table->keys.items[key])))
			table->shown.items[table->shown.count++] = table->keys.items[key];
	grid_size(grid, &table->shown, count);
	for (size_t i = 0; i < count; i++) {
		const struct reported reported = reported_of((*order)[i]);

		row_fill(table, &table->shown, (*order)[i], &reported,
			 grid->values + i * table->shown.count);
	}
	return count;
}

const struct column_list *distribution_rows_list(struct distribution_table *table)
{
	struct column_list *list = &table->shown;
	bool values = false; /* of a probe of the user's own */

	*list = (struct column_list){0};
	for (size_t i = 0; i < table->kind_count; i++)
		values |= table->kinds[i]->below;
	for (size_t i = 0; i < INTERVAL_COUNT; i++)
		list->items[list->count++] = &interval_columns[i];
	for (size_t i = 0; i < table->keys.count; i++)
		list->items[list->count++] = table->keys.items[i];
	for (size_t i = 0; i < REPORTED_COUNT; i++)
		list->items[list->count++] = &reported_columns[i];
	for (size_t i = 0; i < AMOUNT_COUNT && values; i++)
		list->items[list->count++] = &amount_columns[i];
	list->items[list->count++] = &buckets_column;
	return list;
}

/* Adds lower bounds, in ns or of numbers, and the number of events: "64:12 256:3"; NUL-terminated.
 */
static void buckets_add(struct text *to, const struct distribution *distribution)
{
	const struct histogram *histogram = &distribution->histogram;
	const int shift = distribution->kind->measure == TRACE_AMOUNT ? HISTOGRAM_AMOUNT_SHIFT : 0;
	bool any = false;

	for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
		if (!histogram->buckets[i] || distribution->kind->measure == TRACE_COUNT)
			continue;
		text_add_format(to, "%s%lld:%lld", any ? " " : "",
				(long long)(histogram_low_ns(i) >> shift),
				(long long)histogram->buckets[i]);
		any = true;
	}
	text_add(to, "", 1);
}

void distribution_rows_fill(struct distribution_table *table, const struct tally *tally,
			    struct grid *grid)
{
	const struct column_list *list = distribution_rows_list(table);
	const struct distribution **order;
	size_t count = order_make(table, NULL, &order);
	const char *buckets;

	grid_size(grid, list, count);
	text_clear(&table->buckets);
	for (size_t i = 0; i < count; i++)
		buckets_add(&table->buckets, order[i]);
	buckets = text_string(&table->buckets);
	for (size_t i = 0; i < count; i++) {
		struct reported reported = reported_of(order[i]);

		reported.until_us = tally->until_us;
		reported.elapsed_us = tally->elapsed_us;
		reported.buckets = buckets;
		buckets += strlen(buckets) + 1;
		row_fill(table, list, order[i], &reported, grid->values + i * list->count);
	}
	free(order);
}
