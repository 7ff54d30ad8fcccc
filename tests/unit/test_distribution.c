/* SPDX-License-Identifier: GPL-2.0-or-later */
/* --trace: measurements are grouped, bounded, and printed for people and machines; kinds of
 * trace */
#include "unit.h"
#include "base/names.h"
#include "kernel/probe_table.h"
#include "kernel/record.h"
#include "report/distribution.h"
#include "sample/wait_rule.h"
#include "render/renderer.h"
#include "live/trace_table.h"

static const struct trace_kind sleeps = {
	.name = "sleeps", .help = "a fake kind", .columns = "state,syscall", .fails = true};
static const struct trace_kind waits = {.name = "waits", .help = "another one", .bytes = true};
static const struct trace_kind *const kinds[] = {&sleeps, &waits};

static struct distribution_table table;

static struct sample sample_of(const char *comm, int64_t state, const char *syscall)
{
	struct sample sample = *sample_absent();

	sample.thread.comm = name_of_string(comm);
	sample.now.state = state;
	sample.call.name = name_of_string(syscall);
	return sample;
}

static void add(const struct trace_kind *kind, const char *comm, int64_t state, const char *syscall,
		const struct histogram *histogram)
{
	struct sample sample = sample_of(comm, state, syscall);

	distribution_table_add(&table, kind, &sample, histogram);
}

static int begin(void **state)
{
	const struct histogram short_ones = {
		.sum_ns = 30000, .max_ns = 1900, .buckets = {[5] = 18, [0] = 2}};
	const struct histogram long_one = {.sum_ns = 10000000000,
					   .max_ns = 10000000000,
					   .amount = 4096,
					   .buckets = {[28] = 1}};
	struct column_list list = {0};
	struct sample failed = sample_of("a", STATE_SLEEP, "read");
	struct error e = {0};

	failed.event.error = "EAGAIN";
	assert_int_equal(column_list_add(&list, "samples,timestamp,comm,cpu_us", true, &e), 0);
	distribution_table_init(&table, kinds, 2, &list);
	add(&sleeps, "b,\"x\"", STATE_SLEEP, "read", &short_ones);
	add(&sleeps, "a", STATE_SLEEP, "read", &short_ones);
	distribution_table_add(&table, &sleeps, &failed, &short_ones);
	add(&sleeps, "a", STATE_DISK, "fsync", &long_one);
	add(&waits, "a", ABSENT, NULL, &long_one);
	return 0;
}

static int end(void **state)
{
	distribution_table_done(&table);
	return 0;
}

static void people_see_tables_and_bars(void **state)
{
	struct interval interval = {.width = 80};
	struct text text = {0};

	interval_add_distributions(&text, &interval, &table);
	assert_string_equal(
		text_string(&text),
		"\n"
		"sleeps: a fake kind\n"
		"COUNT  ERRORS    TOTAL      P50      P99      MAX  COMM        STATE  SYSCALL\n"
		"    1       0   10.0 s   10.0 s   10.0 s   10.0 s  a           D      fsync\n"
		"   40      20  60.0 us  1.41 us  1.90 us  1.90 us  a           S      read\n"
		"   20       0  30.0 us  1.41 us  1.90 us  1.90 us  b,\"x\"       S      read\n"
		"\n"
		"a D fsync\n"
		"   8.59 s ..  17.2 s         1  ########################################\n"
		"\n"
		"a S read\n"
		"     0 ns ..   64 ns         4  ####\n"
		"    64 ns ..  128 ns         0\n"
		"   128 ns ..  256 ns         0\n"
		"   256 ns ..  512 ns         0\n"
		"   512 ns .. 1.02 us         0\n"
		"  1.02 us .. 2.05 us        36  ########################################\n"
		"\n"
		"b,\"x\" S read\n"
		"     0 ns ..   64 ns         2  ####\n"
		"    64 ns ..  128 ns         0\n"
		"   128 ns ..  256 ns         0\n"
		"   256 ns ..  512 ns         0\n"
		"   512 ns .. 1.02 us         0\n"
		"  1.02 us .. 2.05 us        18  ########################################\n"
		"\n"
		"waits: another one\n"
		"COUNT    TOTAL      P50      P99      MAX    BYTES  COMM\n"
		"    1   10.0 s   10.0 s   10.0 s   10.0 s     4096  a\n"
		"\n"
		"a\n"
		"   8.59 s ..  17.2 s         1  ########################################\n");
	text_done(&text);
}

/* Values that a kind does not have are not columns of its table. */
static void columns_of_nobody_are_left_out(void **state)
{
	const struct distribution **order;
	struct grid grid = {0};

	assert_int_equal(distribution_grid_fill(&table, &waits, false, &grid, &order), 1);
	assert_int_equal(grid.list->count, 9);
	assert_string_equal(grid.list->items[8]->name, "comm");
	assert_string_equal(grid_row(&grid, 0)[8].text, "a");
	free(order);
	grid_done(&grid);
}

static void expect_rows(const struct renderer *renderer, const char *expected)
{
	const struct tally tally = {.until_us = 1000000, .elapsed_us = 250000};
	struct grid grid = {0};
	struct interval interval = {.grid = &grid};
	struct text text = {0};

	if (renderer->begin)
		renderer->begin(&text, distribution_rows_list(&table));
	distribution_rows_fill(&table, &tally, &grid);
	renderer->add(&text, &interval);
	assert_string_equal(text_string(&text), expected);
	text_done(&text);
	grid_done(&grid);
}

#define ROWS_HEAD                                                                              \
	"timestamp,elapsed_us,trace,comm,state,syscall,count,errors,total_ns,p50_ns,p90_ns,"   \
	"p99_ns,p999_ns,max_ns,bytes,throttled_ns,idle_share,cpu_share,runq_share,disk_share," \
	"sleep_share,tail_cpu_share,tail_runq_share,tail_disk_share,tail_sleep_share,"         \
	"slept_in,buckets\n"

static void machines_get_rows(void **state)
{
	expect_rows(&renderer_csv, ROWS_HEAD
		    "\"1970-01-01T00:00:01.000000Z\",250000,\"sleeps\",\"a\",\"D\",\"fsync\",1,0,"
		    "10000000000,10000000000,10000000000,10000000000,10000000000,10000000000,,,,,,,"
		    ",,,,,,"
		    "\"8589934592:1\"\n"
		    "\"1970-01-01T00:00:01.000000Z\",250000,\"sleeps\",\"a\",\"S\",\"read\","
		    "40,20,"
		    "60000,"
		    "1413,1802,1900,1900,1900,,,,,,,,,,,,,\"0:4 1024:36\"\n"
		    "\"1970-01-01T00:00:01.000000Z\",250000,\"sleeps\",\"b,\"\"x\"\"\",\"S\","
		    "\"read\","
		    "20,0,30000,1413,1802,1900,1900,1900,,,,,,,,,,,,,\"0:2 1024:18\"\n"
		    "\"1970-01-01T00:00:01.000000Z\",250000,\"waits\",\"a\",,,1,,10000000000,"
		    "10000000000,"
		    "10000000000,10000000000,10000000000,10000000000,4096,,,,,,,,,,,,"
		    "\"8589934592:"
		    "1\"\n");
	distribution_table_clear(&table);
	expect_rows(&renderer_csv, ROWS_HEAD);
	add(&waits, "a", ABSENT, NULL, &(struct histogram){.max_ns = 10, .buckets = {1}});
	expect_rows(&renderer_json,
		    "{\"timestamp\":\"1970-01-01T00:00:01.000000Z\",\"elapsed_us\":250000,"
		    "\"trace\":\"waits\",\"comm\":\"a\",\"state\":null,\"syscall\":null,"
		    "\"count\":1,\"errors\":null,\"total_ns\":0,\"p50_ns\":10,\"p90_ns\":10,"
		    "\"p99_ns\":10,\"p999_ns\":10,\"max_ns\":10,\"bytes\":0,\"throttled_ns\":null,"
		    "\"idle_share\":null,"
		    "\"cpu_share\":null,"
		    "\"runq_share\":null,"
		    "\"disk_share\":null,"
		    "\"sleep_share\":null,"
		    "\"tail_cpu_share\":null,"
		    "\"tail_runq_share\":null,"
		    "\"tail_disk_share\":null,"
		    "\"tail_sleep_share\":null,"
		    "\"slept_in\":null,"
		    "\"buckets\":\"0:1\"}\n");
}

/* The slowest 1 % are the one piece of the last bucket, which slept. */
static void parts_are_summed(void **state)
{
	struct histogram_split split = {0};
	struct histogram histogram = {.split = &split};
	int64_t parts_ns[SPLIT_PARTS];

	histogram.buckets[3] = 99;
	split.parts_ns[3][0] = 9000;
	split.parts_ns[3][1] = 900;
	histogram.buckets[9] = 1;
	split.parts_ns[9][3] = 30000;
	histogram_split_sum(&histogram, 1000, parts_ns);
	assert_int_equal(parts_ns[0], 9000);
	assert_int_equal(parts_ns[1], 900);
	assert_int_equal(parts_ns[3], 30000);
	histogram_split_sum(&histogram, 10, parts_ns);
	assert_int_equal(parts_ns[0], 0);
	assert_int_equal(parts_ns[3], 30000);
	/* half of the cut bucket's events */
	histogram_split_sum(&histogram, 505, parts_ns);
	assert_int_equal(parts_ns[0], 9000 * 50 / 99);
	assert_int_equal(parts_ns[3], 30000);
}

/* Samples of threads asleep within the pieces are added to these, most first; those of pieces that
 * have not ended make no row. */
static void what_pieces_slept_in_is_told(void **state)
{
	static const struct trace_kind work = {.name = "work", .help = "", .splits = true};
	static const struct trace_kind *const kind[] = {&work};
	struct histogram_split one = {0}, other = {0};
	const struct histogram piece = {.sum_ns = 500, .max_ns = 500, .buckets = {[3] = 1}};
	const struct histogram slept = {.split = &one}, more = {.split = &other};
	struct sample who = sample_of("a", ABSENT, NULL), open = sample_of("b", ABSENT, NULL);
	struct distribution_table own;
	struct column_list keys = {0};
	struct tally tally = {0};
	struct grid grid = {0};
	size_t column = 0;

	one.slept[wait_rule_find("lock") - wait_rules] = 3;
	other.slept[wait_rule_find("client") - wait_rules] = 5;
	assert_true(wait_rule_count <= SPLIT_CLASSES);
	assert_int_equal(column_list_add(&keys, "comm", false, NULL), 0);
	distribution_table_init(&own, kind, 1, &keys);
	distribution_table_add(&own, &work, &who, &piece);
	distribution_table_add(&own, &work, &who, &slept);
	distribution_table_add(&own, &work, &who, &more);
	distribution_table_add(&own, &work, &open, &slept);
	assert_int_equal(own.count, 1);
	distribution_rows_fill(&own, &tally, &grid);
	while (strcmp(grid.list->items[column]->name, "slept_in") != 0)
		column++;
	assert_string_equal(grid_row(&grid, 0)[column].text, "client:5 lock:3");
	distribution_table_done(&own);
	grid_done(&grid);
}

/* Time for a quota is printed if it is known; its title only if there is such time. */
static void time_for_a_quota_is_told(void **state)
{
	static const struct trace_kind runq = {.name = "runq", .help = "", .quota = true};
	static const struct trace_kind *const kind[] = {&runq};
	const struct histogram free_one = {.sum_ns = 500, .max_ns = 500, .buckets = {[3] = 1}};
	const struct histogram held = {
		.sum_ns = 900, .max_ns = 900, .amount = 700, .buckets = {[3] = 1}};
	const struct histogram unknown = {.amount = ABSENT, .buckets = {1}};
	const struct distribution **order = NULL;
	struct distribution_table own;
	struct column_list none = {0};
	struct sample who = sample_of("a", ABSENT, NULL);
	struct grid grid = {0};
	struct histogram sum = free_one;

	distribution_table_init(&own, kind, 1, &none);
	distribution_table_add(&own, &runq, &who, &free_one);
	distribution_grid_fill(&own, &runq, true, &grid, &order);
	for (size_t i = 0; i < grid.list->count; i++)
		assert_string_not_equal(grid.list->items[i]->name, "throttled_ns");
	free(order);
	distribution_table_add(&own, &runq, &who, &held);
	distribution_grid_fill(&own, &runq, true, &grid, &order);
	assert_string_equal(grid.list->items[grid.list->count - 1]->name, "throttled_ns");
	assert_int_equal(grid.values[grid.list->count - 1].number, 700);
	free(order);
	histogram_merge(&sum, &unknown);
	assert_int_equal(sum.amount, ABSENT);
	histogram_merge(&sum, &held);
	assert_int_equal(sum.amount, ABSENT);
	distribution_table_done(&own);
	grid_done(&grid);
}

static void too_many_are_counted(void **state)
{
	const struct histogram two = {.buckets = {2}};
	char comm[16];

	for (int i = 0; i < DISTRIBUTIONS_MAX; i++) {
		snprintf(comm, sizeof(comm), "c%d", i);
		add(&waits, comm, ABSENT, NULL, &two);
	}
	/* the five from before are there */
	assert_int_equal(table.refused, 2 * 4);
	assert_int_equal(table.count, DISTRIBUTIONS_MAX);
	distribution_table_clear(&table);
	assert_int_equal(table.refused, 0);
}

static void lines_fit(void **state)
{
	struct interval interval = {.row_limit = 20};

	for (interval.width = 10; interval.width < 120; interval.width++) {
		struct text text = {0};

		interval_add_distributions(&text, &interval, &table);
		for (char *save = NULL, *line = strtok_r(text.bytes, "\n", &save); line;
		     line = strtok_r(NULL, "\n", &save))
			assert_true(text_width(line) <= interval.width);
		text_done(&text);
	}
}

static void kinds_are_sound(void **state)
{
	struct error e = {0};
	uint32_t bits = 77;

	for (int kind = 0; kind < LATENCY_KIND_COUNT; kind++) {
		const struct trace_row *row = &trace_rows[kind];
		struct column_list own = {0};

		assert_non_null(row->kind.name);
		assert_int_equal(trace_kinds_parse(row->kind.name, &bits, &e), 0);
		assert_int_equal(bits, 1u << kind);
		assert_int_equal(trace_groups_of(bits), row->groups);
		assert_true(row->groups);
		if (row->kind.columns)
			assert_int_equal(column_list_add(&own, row->kind.columns, false, &e), 0);
		for (size_t i = 0; i < own.count; i++)
			assert_int_equal(own.items[i]->role, ROLE_KEY);
	}
	assert_int_equal(trace_kinds_parse("offcpu,runq,runq", &bits, &e), 0);
	assert_int_equal(bits, 1u << LATENCY_RUNQ | 1u << LATENCY_OFFCPU);
	assert_int_equal(trace_kinds_parse("runq,ofcpu", &bits, &e), -EINVAL);
	assert_int_equal(e.exit_code, EXIT_USAGE);
	assert_non_null(strstr(e.line, "the kinds are runq, "));
	assert_int_equal(bits, 1u << LATENCY_RUNQ | 1u << LATENCY_OFFCPU);
	error_done(&e);
}

static void sleeps_are_told(void **state)
{
	struct latency_key key = {.kind = LATENCY_OFFCPU, .what = {0x2, 74, 1}};
	struct sample sample = *sample_absent();
	bool compat;

	trace_rows[LATENCY_OFFCPU].report(&key, &sample, &compat);
	assert_int_equal(sample.now.state, STATE_DISK);
	assert_int_equal(sample.call.nr, 74);
	assert_true(compat);
	key = (struct latency_key){.kind = LATENCY_OFFCPU, .what = {0x402, ~0u, 0}};
	sample = *sample_absent();
	trace_rows[LATENCY_OFFCPU].report(&key, &sample, &compat);
	assert_int_equal(sample.now.state, STATE_IDLE);
	assert_int_equal(sample.call.nr, ABSENT);
	assert_false(compat);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(people_see_tables_and_bars, begin, end),
		cmocka_unit_test_setup_teardown(columns_of_nobody_are_left_out, begin, end),
		cmocka_unit_test_setup_teardown(machines_get_rows, begin, end),
		cmocka_unit_test(parts_are_summed),
		cmocka_unit_test(what_pieces_slept_in_is_told),
		cmocka_unit_test(time_for_a_quota_is_told),
		cmocka_unit_test_setup_teardown(too_many_are_counted, begin, end),
		cmocka_unit_test_setup_teardown(lines_fit, begin, end),
		cmocka_unit_test(kinds_are_sound),
		cmocka_unit_test(sleeps_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
