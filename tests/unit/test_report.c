/* SPDX-License-Identifier: GPL-2.0-or-later */
/* value, measure, column_list, group, grid, tally, renderer table */
#include "unit.h"
#include "base/names.h"
#include "report/grid.h"
#include "report/measure.h"
#include "render/renderer.h"
#include "report/value.h"

static void assert_decimals(int64_t number, int decimals, const char *expected)
{
	struct text text = {0};

	text_add_decimals(&text, number, decimals);
	assert_string_equal(text_string(&text), expected);
	text_done(&text);
}

static void decimals(void **state)
{
	assert_decimals(0, 2, "0.00");
	assert_decimals(5, 2, "0.05");
	assert_decimals(-5, 1, "-0.5");
	assert_decimals(-1234, 3, "-1.234");
	assert_decimals(INT64_MAX, 1, "922337203685477580.7");
}

static void numbers_stay_in_bounds(void **state)
{
	assert_int_equal(ratio(1, 100, 3), 33);
	assert_int_equal(ratio(2, 100, 3), 67);
	assert_int_equal(ratio(1, 100, 0), 0);
	assert_int_equal(ratio(INT64_MAX, 1000, 1), INT64_MAX);
	assert_int_equal(ratio(-INT64_MAX, 1000, 1), -INT64_MAX);
	assert_int_equal(sum(ABSENT, 3), 3);
	assert_int_equal(sum(3, ABSENT), 3);
	assert_int_equal(sum(ABSENT, ABSENT), ABSENT);
	assert_int_equal(sum(INT64_MAX, 1), INT64_MAX);
	assert_int_equal(sum(-INT64_MAX, -5), -INT64_MAX);
}

static void value_order(void **state)
{
	const struct column *text = sample_column_find("comm"), *hex = sample_column_find("arg0");
	union value none = {.text = NULL}, a = {.text = "a"}, b = {.text = "b"};
	union value big = {.number = -1}, small = {.number = 1}, gone = {.number = ABSENT};

	assert_true(value_compare(text, none, a) < 0 && value_compare(text, a, none) > 0);
	assert_true(value_compare(text, a, b) < 0 && !value_compare(text, none, none));
	assert_true(value_compare(hex, small, big) < 0 && value_compare(hex, gone, small) < 0);
}

static void measures_are_sound(void **state)
{
	struct tally tally = {.scans = 100, .samples = 8, .elapsed_us = 4000000};
	struct measures measures = measures_of(4, 200000, NULL, &tally);
	union value sums[MEASURE_SUMS];

	assert_int_equal(measures.samples, 4);
	assert_int_equal(measures.avg_thr, 4);
	assert_int_equal(measures.seconds, 20);
	assert_int_equal(measures.share, 500);
	for (int i = 0; i < MEASURE_SUMS; i++)
		sums[i].number = ABSENT;
	assert_true(measure_sums_idle(sums));
	measures = measures_of(0, 0, sums, &tally);
	assert_int_equal(measures.cpu_s, ABSENT);
	assert_int_equal(measures.csw_per_s, ABSENT);
	assert_int_equal(measures.runq_avg_us, ABSENT);
	assert_int_equal(measures.forks, ABSENT);
	sums[SUM_SLEEP_US].number = 123456789;
	assert_true(measure_sums_idle(sums));
	sums[SUM_CPU_US].number = 1500499;
	sums[SUM_RUNQ_US].number = 900;
	sums[SUM_VCSW].number = 20;
	sums[SUM_IVCSW].number = 10;
	sums[SUM_EXITS].number = 7;
	sums[SUM_DEAD_CPU_US].number = 0;
	assert_false(measure_sums_idle(sums));
	measures = measures_of(0, 0, sums, &tally);
	assert_int_equal(measures.cpu_s, 1500);
	assert_int_equal(measures.sleep_s, 123457);
	assert_int_equal(measures.csw_per_s, 750);
	assert_int_equal(measures.runq_avg_us, 30);
	assert_int_equal(measures.exits, 7);
	assert_int_equal(measures.dead_cpu_s, 0);
	for (size_t i = 0; i < measure_column_count; i++) {
		assert_true(*measure_columns[i].help && *measure_columns[i].title);
		assert_int_equal(measure_columns[i].role, ROLE_MEASURE);
		assert_null(sample_column_find(measure_columns[i].name));
		assert_true(measure_columns[i].offset + 8 <= sizeof(struct measures));
	}
}

static void lists(void **state)
{
	struct column_list list = {0};
	struct error e = {0};

	assert_int_equal(column_list_add(&list, REPORT_MEASURES_DEFAULT, true, &e), 0);
	assert_int_equal(column_list_add(&list, REPORT_COLUMNS_DEFAULT, true, &e), 0);
	assert_int_equal(column_list_add(&list, "state,filename", true, &e), 0);
	assert_int_equal(list.count, 8);
	assert_int_equal(column_list_needs(&list),
			 NEED_USER | NEED_COMM | NEED_COMMSUM | NEED_SYSCALL | NEED_FILE);
	assert_int_equal(column_list_add(&list, "COMM*,FILENAME,AVG_THR", true, &e),
			 0); /* titles */
	assert_int_equal(list.count, 8);
	assert_int_equal(column_list_add(&list, "waits", true, &e), -EINVAL);
	assert_non_null(strstr(e.line, "nearest: waits_on"));
	assert_int_equal(column_list_add(&list, "tid,filenam", true, &e), -EINVAL);
	assert_int_equal(e.exit_code, EXIT_USAGE);
	assert_non_null(strstr(e.line, "nearest: filename"));
	assert_int_equal(list.count, 8);
	assert_int_equal(column_list_add(&list, "tid,", true, &e), -EINVAL);
	assert_int_equal(column_list_add(&list, "", true, &e), -EINVAL);
	list.count = 0;
	assert_int_equal(column_list_add(&list, "samples", false, &e), -EINVAL);
	assert_int_equal(column_list_add(&list, ROW_COLUMNS_DEFAULT, false, &e), 0);
	assert_int_equal(list.count, 18);
	error_done(&e);
}

static void all_columns_fit_a_list(void **state)
{
	struct column_list list = {0};
	struct error e = {0};

	for (size_t i = 0; i < sample_column_count; i++)
		assert_int_equal(column_list_add(&list, sample_columns[i].name, true, &e), 0);
	for (size_t i = 0; i < measure_column_count; i++)
		assert_int_equal(column_list_add(&list, measure_columns[i].name, true, &e), 0);
	assert_int_equal(list.count, sample_column_count + measure_column_count);
}

static void sets_and_keys(void **state)
{
	struct column_list list = {0};
	struct error e = {0};

	assert_int_equal(column_list_add(&list, "waker,state,waker", true, &e), 0);
	assert_int_equal(list.count, 4);
	assert_string_equal(list.items[0]->name, "waker_pid");
	assert_string_equal(list.items[3]->name, "state");
	assert_int_equal(column_list_add_keys(&list, "thread,timestamp", &e), 0);
	assert_int_equal(list.count, 8);
	assert_int_equal(column_list_add_keys(&list, "user,cpu_us", &e), -EINVAL);
	assert_non_null(strstr(e.line, "cpu_us is a value"));
	assert_int_equal(column_list_add_keys(&list, "samples", &e), -EINVAL);
	assert_int_equal(column_list_add_keys(&list, "wakr", &e), -EINVAL);
	assert_non_null(strstr(e.line, "nearest: waker"));
	assert_int_equal(list.count, 8);
	/* all names in sets exist, and no column has a set's name */
	for (size_t i = 0; i < column_set_count; i++) {
		list.count = 0;
		assert_int_equal(column_list_add(&list, column_sets[i].columns, true, &e), 0);
		assert_null(sample_column_find(column_sets[i].name));
	}
	/* every key can be grouped by */
	for (size_t i = 0; i < sample_column_count; i++) {
		list.count = 0;
		assert_int_equal(column_list_add_keys(&list, sample_columns[i].name, &e),
				 sample_columns[i].role == ROLE_KEY ? 0 : -EINVAL);
	}
	error_done(&e);
}

/* Groups of one sample of a in D, then of accounts: of the same thread, of one that only slept, of
 * exited ones.
 *
 *   samples  state  comm  cpu_s  forks
 *         1  D      a     0.010      -
 *         0  -      sh    2.000      3
 *         0  -      a     0.005      -
 */
static void accounts_add_to_groups(void **state)
{
	struct tally tally = {.scans = 1};
	struct sample sample = *sample_absent(), dead = *sample_absent(), slept;
	struct column_list list = {0};
	struct group_table groups;
	struct grid grid = {0};
	struct error e = {0};

	column_list_add(&list, "state,comm,cpu_s,forks,samples", true, &e);
	group_table_init(&groups, &list);
	sample.thread.comm = name_of_string("a");
	sample.now.state = STATE_DISK;
	sample.sums.cpu_us = 10000;
	group_table_add(&groups, &sample);
	sample.now.state = ABSENT;
	sample.sums.cpu_us = 5000;
	group_table_add_account(&groups, &sample);
	slept = sample;
	slept.thread.comm = name_of_string("slept");
	slept.sums.cpu_us = 0;
	slept.sums.sleep_us = 1000000;
	group_table_add_account(&groups, &slept);
	dead.thread.comm = name_of_string("sh");
	dead.thread.user = name_of_string("root");
	dead.sums.cpu_us = dead.sums.dead_cpu_us = 2000000;
	dead.sums.forks = 3;
	group_table_add_account(&groups, &dead);
	grid_fill_groups(&grid, &groups, &tally);
	assert_int_equal(grid.row_count, 3);
	assert_int_equal(grid_row(&grid, 0)[0].number, STATE_DISK);
	assert_int_equal(grid_row(&grid, 0)[2].number, 10);
	assert_int_equal(grid_row(&grid, 0)[3].number, ABSENT);
	assert_int_equal(grid_row(&grid, 0)[4].number, 1);
	assert_string_equal(grid_row(&grid, 1)[1].text, "sh");
	assert_int_equal(grid_row(&grid, 1)[2].number, 2000);
	assert_int_equal(grid_row(&grid, 1)[3].number, 3);
	assert_int_equal(grid_row(&grid, 1)[4].number, 0);
	assert_int_equal(grid_row(&grid, 2)[0].number, ABSENT);
	assert_int_equal(grid_row(&grid, 2)[2].number, 5);
	tally_add_account(&tally, &dead);
	dead.sums.dead_cpu_us = 1;
	dead.thread.comm = name_of_string("less");
	tally_add_account(&tally, &dead);
	assert_int_equal(tally.forks, 6);
	assert_int_equal(tally.dead_cpu_us, 2000001);
	assert_string_equal(tally.most_comm, "sh");
	group_table_done(&groups);
	/* accounts make no group if no column needs them */
	list.count = 0;
	column_list_add(&list, "comm", true, &e);
	group_table_init(&groups, &list);
	group_table_add_account(&groups, &dead);
	assert_int_equal(groups.count, 0);
	group_table_done(&groups);
	grid_done(&grid);
	error_done(&e);
}

/*   samples  weight  comm  cpu_us  state_us
 *         3      30  b          7        90
 *         1      10  (none)     -         -
 *         1      10  a          -         5
 */
static void groups_fold_and_sort(void **state)
{
	static const struct {
		const char *comm;
		int64_t cpu_us, state_us;
	} rows[] = {
		{"a", ABSENT, 5}, {"b", 3, 90},	    {NULL, ABSENT, ABSENT},
		{"b", 4, 80},	  {"b", ABSENT, 1},
	};
	struct column_list list = {0};
	struct group_table groups;
	struct tally tally = {0};
	struct grid grid = {0};
	struct error e = {0};
	struct sample samples[5];
	struct scan scan = {.weight_us = 10, .samples = samples, .count = 5};

	column_list_add(&list, "samples,weight_us,comm,cpu_us,state_us", true, &e);
	group_table_init(&groups, &list);
	for (size_t i = 0; i < 5; i++) {
		samples[i] = *sample_absent();
		samples[i].scan.weight_us = 10;
		samples[i].thread.comm = name_of_string(rows[i].comm);
		samples[i].sums.cpu_us = rows[i].cpu_us;
		samples[i].now.state_us = rows[i].state_us;
		group_table_add(&groups, &samples[i]);
	}
	tally_add(&tally, &scan);
	grid_fill_groups(&grid, &groups, &tally);
	assert_int_equal(grid.row_count, 3);
	assert_int_equal(grid_row(&grid, 0)[0].number, 3);
	assert_int_equal(grid_row(&grid, 0)[1].number, 30);
	assert_string_equal(grid_row(&grid, 0)[2].text, "b");
	assert_int_equal(grid_row(&grid, 0)[3].number, 7);
	assert_int_equal(grid_row(&grid, 0)[4].number, 90);
	assert_null(grid_row(&grid, 1)[2].text);
	assert_int_equal(grid_row(&grid, 1)[3].number, ABSENT);
	assert_string_equal(grid_row(&grid, 2)[2].text, "a");
	assert_int_equal(grid_row(&grid, 2)[4].number, 5);
	group_table_clear(&groups);
	grid_fill_groups(&grid, &groups, &tally);
	assert_int_equal(grid.row_count, 0);
	group_table_done(&groups);
	grid_done(&grid);
}

/* Times that no recording of tsnap has. */
static void groups_of_odd_times_sort(void **state)
{
	struct column_list list = {0};
	struct group_table groups;
	struct tally tally = {.scans = 1, .samples = 2};
	struct sample sample = *sample_absent();
	struct grid grid = {0};
	struct error e = {0};

	column_list_add(&list, "tid,cpu_s", true, &e);
	group_table_init(&groups, &list);
	for (sample.thread.tid = 0; sample.thread.tid < 2; sample.thread.tid++) {
		sample.sums.cpu_us = sample.thread.tid ? INT64_MAX : -INT64_MAX;
		group_table_add(&groups, &sample);
	}
	grid_fill_groups(&grid, &groups, &tally);
	assert_int_equal(grid_row(&grid, 0)[0].number, 1);
	group_table_done(&groups);
	grid_done(&grid);
}

/* A name of wide characters loses its middle; the next column begins where its title does. */
static void cut_cells_stay_in_line(void **state)
{
	struct sample sample = *sample_absent();
	struct scan scan = {.samples = &sample, .count = 1};
	struct column_list list = {0};
	struct grid grid = {0};
	struct text out = {0};
	struct error e = {0};

	sample.thread.comm = name_of_string("世界世界世界世界");
	sample.thread.tid = 12;
	column_list_add(&list, "comm,tid", true, &e);
	grid_fill_rows(&grid, &list, &scan);
	interval_add_table(&out, &(struct interval){.grid = &grid, .width = 23}, 1);
	assert_string_equal(text_string(&out), "COMM                TID\n"
					       "世界世…界世界        12\n");
	text_done(&out);
	grid_done(&grid);
}

/* Many groups: none is lost or split while the table grows; beyond the limit, samples are
 * counted. */
static void groups_are_bounded(void **state)
{
	struct column_list list = {0};
	struct group_table groups;
	struct error e = {0};
	struct sample sample = *sample_absent();
	int64_t samples = 0;

	column_list_add(&list, "tid", true, &e);
	group_table_init(&groups, &list);
	for (int64_t i = 0; i < GROUPS_MAX + 100; i++) {
		sample.thread.tid = i;
		group_table_add(&groups, &sample);
		sample.thread.tid = i / 2;
		group_table_add(&groups, &sample);
	}
	assert_int_equal(groups.count, GROUPS_MAX);
	assert_int_equal(groups.refused, 100);
	for (size_t i = 0; i < groups.count; i++)
		samples += group_samples(&groups, group_at(&groups, i));
	assert_int_equal(samples + groups.refused, 2 * (GROUPS_MAX + 100));
	group_table_done(&groups);
}

/* Keys that differ only in their highest bits, or are swapped between columns. */
static void groups_of_odd_keys(void **state)
{
	struct column_list list = {0};
	struct group_table groups;
	struct error e = {0};
	struct sample sample = *sample_absent();

	column_list_add(&list, "arg0,arg1,arg2", true, &e);
	group_table_init(&groups, &list);
	for (int twice = 0; twice < 2; twice++)
		for (int64_t i = 0; i < 4096; i++) {
			sample.call.arg[0] = (int64_t)((uint64_t)i << 52);
			sample.call.arg[1] = i % 64;
			sample.call.arg[2] = i / 64;
			group_table_add(&groups, &sample);
		}
	assert_int_equal(groups.count, 4096);
	for (size_t i = 0; i < groups.count; i++)
		assert_int_equal(group_samples(&groups, group_at(&groups, i)), 2);
	group_table_done(&groups);
}

/* Cells that equal the one above, or not, with any content; and one interval after another. */
static void csv_cells(void **state)
{
	static const struct {
		const char *comm, *user;
		int64_t tid, state;
	} rows[] = {
		{"a", "", 1, STATE_ON},	      {"a", "", 1, STATE_ON},
		{"a\"\n", NULL, 1, STATE_RQ}, {"a\"\n", NULL, 22, STATE_RQ},
		{NULL, "a", ABSENT, ABSENT},  {NULL, "a", 22, ABSENT},
	};
	struct column_list list = {0};
	struct sample samples[6];
	struct scan scan = {.samples = samples, .count = 6};
	struct grid grid = {0};
	struct interval interval = {.grid = &grid};
	struct text out = {0};
	struct error e = {0};

	column_list_add(&list, "comm,tid,state,user", false, &e);
	for (size_t i = 0; i < 6; i++) {
		samples[i] = *sample_absent();
		samples[i].thread.comm = name_of_string(rows[i].comm);
		samples[i].thread.user = name_of_string(rows[i].user);
		samples[i].thread.tid = rows[i].tid;
		samples[i].now.state = rows[i].state;
	}
	grid_fill_rows(&grid, &list, &scan);
	renderer_csv.add(&out, &interval);
	scan.samples += 5;
	scan.count = 1;
	grid_fill_rows(&grid, &list, &scan);
	renderer_csv.add(&out, &interval);
	assert_string_equal(text_string(&out), "\"a\",1,\"ON\",\"\"\n"
					       "\"a\",1,\"ON\",\"\"\n"
					       "\"a\"\"\\x0a\",1,\"RQ\",\n"
					       "\"a\"\"\\x0a\",22,\"RQ\",\n"
					       ",,,\"a\"\n"
					       ",22,,\"a\"\n"
					       ",22,,\"a\"\n");
	/* --csv-safe */
	text_clear(&out);
	interval.formulas_kept_out = true;
	samples[5].thread.comm = name_of_string("=cmd(\"x\")");
	grid_fill_rows(&grid, &list, &scan);
	renderer_csv.add(&out, &interval);
	assert_string_equal(text_string(&out), "\"'=cmd(\"\"x\"\")\",22,,\"a\"\n");
	text_done(&out);
	grid_done(&grid);
}

static void tallies(void **state)
{
	struct sample samples[3] = {*sample_absent(), *sample_absent(), *sample_absent()};
	struct scan busy = {
		.time_us = 1000, .weight_us = 100, .samples = samples, .count = 3, .threads = 50};
	struct scan idle = {.time_us = 1100, .weight_us = 100, .threads = 40};
	struct tally tally = {0};

	samples[0].now.state = STATE_ON;
	samples[1].now.state = STATE_SLEEP;
	tally_add(&tally, &busy);
	tally_add(&tally, &idle);
	assert_int_equal(tally.scans, 2);
	assert_int_equal(tally.samples, 3);
	assert_int_equal(tally.active, 2); /* an unknown state counts as active */
	assert_int_equal(tally.active_max, 2);
	assert_int_equal(tally.threads, 90);
	assert_int_equal(tally.threads_max, 50);
	assert_int_equal(tally.elapsed_us, 200);
	assert_int_equal(tally.from_us, 900);
	assert_int_equal(tally.until_us, 1100);
	tally_add_silence(&tally, 1100, 500, 5);
	assert_int_equal(tally.scans, 7);
	assert_int_equal(tally.elapsed_us, 700);
	assert_int_equal(tally.until_us, 1600);
	/* no more threads are active than were seen */
	busy.threads = 1;
	tally_add(&tally, &busy);
	assert_int_equal(tally.threads, 92);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(decimals),
		cmocka_unit_test(numbers_stay_in_bounds),

		cmocka_unit_test(value_order),
		cmocka_unit_test(measures_are_sound),

		cmocka_unit_test(lists),
		cmocka_unit_test(all_columns_fit_a_list),
		cmocka_unit_test(sets_and_keys),
		cmocka_unit_test(accounts_add_to_groups),

		cmocka_unit_test(groups_fold_and_sort),
		cmocka_unit_test(groups_of_odd_times_sort),
		cmocka_unit_test(cut_cells_stay_in_line),
		cmocka_unit_test(groups_are_bounded),
		cmocka_unit_test(groups_of_odd_keys),

		cmocka_unit_test(csv_cells),

		cmocka_unit_test(tallies),

	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	names_clear();
	return failed;
}
