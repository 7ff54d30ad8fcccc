/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Forks and exits, and totals of threads that have exited. */
#include "unit.h"
#include "base/clock.h"
#include "base/names.h"
#include "live/threads/live_dead.h"

static struct process_key key_of(const char *comm, uint32_t uid)
{
	struct process_key key = {.uid = uid};

	memcpy(key.comm, comm, strlen(comm) + 1);
	return key;
}

static void read_row(struct dead_table *table, const char *comm, uint32_t uid,
		     struct process_totals now)
{
	struct process_key key = key_of(comm, uid);

	dead_table_read(table, &key, &now, false);
}

#define VOTES(pid, more) ((uint64_t)(more) << 32 | (pid))

/* A process that made at least half of the forks since the previous account is told; one that made
 * most before is not. */
static void makers(void **state)
{
	static const struct {
		uint64_t forks, forker;
		int64_t pid;
	} rows[] = {
		{100, VOTES(10, 60), 10},    {110, VOTES(10, 70), 10}, {130, VOTES(10, 74), ABSENT},
		{200, VOTES(10, 4), ABSENT}, {210, VOTES(11, 6), 11},
	};
	struct dead_table table = {.others = 0};
	struct sample account;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		size_t at = 0;

		read_row(&table, "sh", 0,
			 (struct process_totals){.forks = rows[i].forks, .forker = rows[i].forker});
		assert_true(dead_table_report(&table, &at, false, &account));
		assert_int_equal(account.makers.fork_pid, rows[i].pid);
		assert_int_equal(account.makers.thread_pid, ABSENT);
	}
	dead_table_done(&table);
}

static void differences_are_told_once(void **state)
{
	struct dead_table table = {.others = 0};
	struct process_key key = key_of("sh", 0);
	struct sample account;
	size_t at = 0;

	dead_table_read(&table, &key, &(struct process_totals){.forks = 100, .cpu_ns = 5000}, true);
	assert_false(dead_table_report(&table, &at, true, &account));
	read_row(&table, "sh", 0,
		 (struct process_totals){.forks = 103,
					 .execs = 2,
					 .exits = 1,
					 .cpu_ns = 7900,
					 .sleep_ns = 1000000,
					 .voluntary_count = 4});
	read_row(&table, "sh", 7, (struct process_totals){.exits = 9});
	at = 0;
	assert_true(dead_table_report(&table, &at, true, &account));
	assert_string_equal(account.thread.comm, "sh");
	assert_int_equal(account.thread.uid, 0);
	assert_int_equal(account.sums.forks, 3);
	assert_int_equal(account.sums.execs, 2);
	assert_int_equal(account.sums.exits, 1);
	assert_int_equal(account.sums.dead_cpu_us, 2); /* 0.9 us are left for the next time */
	assert_int_equal(account.sums.cpu_us, 2);
	assert_int_equal(account.sums.sleep_us, 1000);
	assert_int_equal(account.sums.vcsw, 4);
	assert_int_equal(account.now.state, ABSENT);
	assert_int_equal(account.thread.pid, ABSENT);
	assert_true(dead_table_report(&table, &at, true, &account));
	assert_int_equal(account.thread.uid, 7);
	assert_int_equal(account.sums.exits, 9);
	assert_false(dead_table_report(&table, &at, true, &account));
	read_row(&table, "sh", 0,
		 (struct process_totals){.forks = 103,
					 .execs = 2,
					 .exits = 1,
					 .cpu_ns = 8000,
					 .sleep_ns = 1000000,
					 .voluntary_count = 4});
	at = 0;
	assert_true(dead_table_report(&table, &at, false, &account));
	assert_int_equal(account.sums.dead_cpu_us, 1);
	assert_int_equal(account.sums.cpu_us, ABSENT); /* not requested */
	dead_table_done(&table);
}

static void what_was_told_is_taken_off(void **state)
{
	struct dead_table table = {.others = 0};
	const struct totals_gone gone = {.comm = name_of_string("cc1"),
					 .uid = 5,
					 .reported = {.cpu_ns = 30000, .voluntary_count = 2}};
	struct sample account;
	struct process_key key = key_of("cc1", 6);
	size_t at = 0;

	/* exited before its end was read */
	dead_table_take_off(&table, &gone);
	assert_false(dead_table_report(&table, &at, true, &account));
	read_row(&table, "cc1", 5,
		 (struct process_totals){.exits = 1, .cpu_ns = 50000, .voluntary_count = 3});
	at = 0;
	assert_true(dead_table_report(&table, &at, true, &account));
	assert_int_equal(account.sums.cpu_us, 20);
	assert_int_equal(account.sums.vcsw, 1);
	assert_int_equal(account.sums.dead_cpu_us, 50); /* CPU time of its whole life */
	/* a row of another user is separate */
	read_row(&table, "cc1", 6, (struct process_totals){.exits = 1, .cpu_ns = 50000});
	at = 0;
	assert_true(dead_table_report(&table, &at, true, &account));
	assert_int_equal(account.sums.cpu_us, 50);
	/* a new table of the kernel's continues from its counts at the same time */
	dead_table_read(&table, &key, &(struct process_totals){.exits = 3}, true);
	read_row(&table, "cc1", 6, (struct process_totals){.exits = 5});
	at = 0;
	assert_true(dead_table_report(&table, &at, true, &account));
	assert_int_equal(account.sums.exits, 2);
	dead_table_done(&table);
}

static void others_are_counted(void **state)
{
	struct dead_table table = {.others = 0};
	struct sample account;
	size_t at = 0;

	read_row(&table, "", PROCESS_OTHERS_UID, (struct process_totals){.forks = 2, .exits = 3});
	assert_int_equal(table.others, 5);
	assert_true(dead_table_report(&table, &at, true, &account));
	assert_string_equal(account.thread.comm, OTHERS_COMM);
	assert_int_equal(account.thread.uid, ABSENT);
	dead_table_done(&table);
}

/* Subtracts from the row of all others what samples reported of a thread whose name has no row in
 * the kernel's full table; its time is in that row. */
static void what_was_told_of_others_is_taken_off(void **state)
{
	const struct totals_gone gone = {.comm = name_of_string("late"),
					 .uid = 5,
					 .reported = {.cpu_ns = 30000, .voluntary_count = 2}};
	struct dead_table table = {.others = 0};
	struct sample account;
	size_t at = 0;

	read_row(&table, "cc1", 5, (struct process_totals){.cpu_ns = 7000});
	read_row(&table, "", PROCESS_OTHERS_UID,
		 (struct process_totals){.exits = 3, .cpu_ns = 50000});
	dead_table_take_off(&table, &gone);
	assert_int_equal(table.rows.count, 2);
	assert_true(dead_table_report(&table, &at, true, &account));
	assert_int_equal(account.sums.cpu_us, 7);
	assert_true(dead_table_report(&table, &at, true, &account));
	assert_string_equal(account.thread.comm, OTHERS_COMM);
	assert_int_equal(account.sums.cpu_us, 20);
	assert_int_equal(account.sums.dead_cpu_us, 50);
	/* a larger table of the kernel's has a row for the name */
	dead_table_read(&table, &(struct process_key){.uid = PROCESS_OTHERS_UID},
			&(struct process_totals){0}, true);
	dead_table_take_off(&table, &gone);
	assert_int_equal(table.rows.count, 3);
	dead_table_done(&table);
}

/* Scans wait to be processed, and some threads ended after the last processed one. */
static void what_came_after_the_last_scan_stays(void **state)
{
	const struct totals_gone gone = {
		.comm = name_of_string("cc1"),
		.uid = 5,
		.reported = {.cpu_ns = 30000, .sleep_ns = 10000, .until_ns = 1010000}};
	struct dead_table table = {.ended_ns = 1000000};
	struct sample account;
	size_t at = 0;

	read_row(&table, "cc1", 5,
		 (struct process_totals){
			 .exits = 3, .cpu_ns = 80000, .sleep_ns = 17000, .voluntary_count = 3});
	dead_table_take_off(&table, &gone);
	dead_table_end(&table, 1040000, 1100000);
	assert_true(dead_table_report(&table, &at, true, &account));
	/* samples have reported 7500 of it since the previous end: 0.4 of 50000 plus that, minus
	 * that */
	assert_int_equal(account.sums.cpu_us, 15);
	assert_int_equal(account.sums.sleep_us, 1); /* 0.4 of 7000 plus 2500, minus 2500 */
	assert_int_equal(account.sums.dead_cpu_us, 80);
	assert_int_equal(account.sums.exits, 3);
	assert_int_equal(account.sums.vcsw, 3);
	dead_table_end(&table, 1200000, 1200100);
	at = 0;
	assert_true(dead_table_report(&table, &at, true, &account));
	assert_int_equal(account.sums.cpu_us, 35);
	assert_int_equal(account.sums.sleep_us, 6);
	assert_int_equal(account.sums.dead_cpu_us, 0);
	assert_int_equal(account.sums.exits, 0);
	/* samples have reported more than the share that is assumed to be before the end */
	read_row(&table, "cc1", 5, (struct process_totals){.exits = 3, .cpu_ns = 130000});
	dead_table_take_off(
		&table, &(struct totals_gone){.comm = name_of_string("cc1"),
					      .uid = 5,
					      .reported = {.cpu_ns = 40000, .until_ns = 1250000}});
	dead_table_end(&table, 1210000, 1220000);
	at = 0;
	assert_true(dead_table_report(&table, &at, true, &account));
	assert_int_equal(account.sums.cpu_us, 0);
	assert_int_equal(account.sums.dead_cpu_us, 50);
	dead_table_end(&table, 1300000, 1300000);
	at = 0;
	assert_true(dead_table_report(&table, &at, true, &account));
	assert_int_equal(account.sums.cpu_us, 10);
	dead_table_done(&table);
}

struct reported {
	struct totals_gone gone;
	int count;
};

static void gone_keep(void *to, const struct totals_gone *gone)
{
	struct reported *reported = to;

	reported->gone = *gone;
	reported->count++;
}

static void take(struct totals_table *table, int64_t tid, int64_t start_ns, int64_t cpu_ns,
		 int64_t switches, int64_t *cpu_us)
{
	struct live_totals now = {.cpu_ns = cpu_ns, .voluntary_count = switches};
	struct sample sample = *sample_absent();

	sample.thread.tid = tid;
	sample.thread.start_ns = start_ns;
	sample.thread.comm = name_of_string("a");
	sample.thread.uid = 3;
	totals_take(table, &now, &sample);
	*cpu_us = sample.sums.cpu_us;
}

static void threads_that_are_gone(void **state)
{
	struct reported reported = {.count = 0};
	struct totals_table table = {.gone = gone_keep, .to = &reported};
	int64_t cpu_us;

	take(&table, 10, 1, 5000, 3, &cpu_us);
	take(&table, 11, 1, 9000, 3, &cpu_us);
	assert_int_equal(cpu_us, 9);
	/* the tid is another thread's by now */
	take(&table, 10, 2, 1000, 1, &cpu_us);
	assert_int_equal(cpu_us, 1);
	assert_int_equal(reported.count, 1);
	assert_int_equal(reported.gone.reported.cpu_ns, 5000);
	assert_string_equal(reported.gone.comm, "a");
	assert_int_equal(reported.gone.uid, 3);
	/* a record that began anew under the same tid and start */
	take(&table, 10, 2, 700000, 0, &cpu_us);
	assert_int_equal(cpu_us, 700);
	assert_int_equal(reported.count, 2);
	totals_unmark(&table);
	totals_mark(&table, 10);
	totals_sweep(&table);
	assert_int_equal(reported.count, 3);
	assert_int_equal(reported.gone.reported.cpu_ns, 9000);
	totals_done(&table);
}

static void sleep_alone_is_told_apart(void **state)
{
	struct totals_table table = {.gone = NULL};
	struct live_totals now = {.cpu_ns = 5000, .voluntary_count = 3};
	struct sample sample = *sample_absent();

	sample.thread.tid = 10;
	sample.thread.start_ns = 1;
	assert_false(totals_only_slept(&table, &now, 10, 1));
	assert_true(totals_only_slept(&table, &(struct live_totals){.sleep_ns = 99999}, 10, 1));
	totals_take(&table, &now, &sample);
	now.sleep_ns = 123456789;
	assert_true(totals_only_slept(&table, &now, 10, 1));
	now.disk_ns = 1000;
	assert_false(totals_only_slept(&table, &now, 10, 1));
	/* the sample took nothing */
	totals_take(&table, &now, &sample);
	assert_int_equal(sample.sums.sleep_us, 123456);
	totals_done(&table);
}

/* A record shows that its thread was not switched since its totals were taken. */
static void totals_that_stand_are_known(void **state)
{
	struct totals_table table = {.gone = NULL};
	struct live_totals now = {.cpu_ns = 5000, .voluntary_count = 3, .switched_ns = 70};
	const struct live_totals never_ran = {.sleep_ns = 99999, .switched_ns = 5};
	struct sample sample = *sample_absent();

	sample.thread.tid = 10;
	sample.thread.start_ns = 1;
	assert_true(totals_stand(&table, &never_ran, 10));
	assert_false(totals_stand(&table, &now, 10));
	totals_take(&table, &now, &sample);
	totals_unmark(&table);
	assert_true(totals_stand(&table, &now, 10));
	totals_sweep(&table); /* leaves it, as it was marked */
	assert_true(totals_stand(&table, &now, 10));
	now.switched_ns = 71; /* another thread with the same id, though it did as much */
	assert_false(totals_stand(&table, &now, 10));
	now.switched_ns = 70;
	now.cpu_ns += 1000; /* the rest is still to be reported */
	assert_false(totals_stand(&table, &now, 10));
	assert_false(totals_stand(&table, &never_ran, 10));
	totals_done(&table);
}

#define SECOND 1000000000ll

/* Takes a thread that began with tsnap, at 100 s, and has run a quarter of the time. */
static void take_until(struct totals_table *table, int64_t until_s, struct sample *sample)
{
	int64_t lived_ns = (until_s - 100) * SECOND;
	const struct live_totals now = {.at_ns = until_s * SECOND,
					.until_ns = until_s * SECOND,
					.cpu_ns = lived_ns / 4,
					.runq_ns = lived_ns - lived_ns / 4,
					.voluntary_count = until_s};

	*sample = *sample_absent();
	sample->thread.tid = 10;
	sample->thread.start_ns = 1;
	totals_take(table, &now, sample);
}

static void times_are_of_the_scans_alone(void **state)
{
	struct totals_table table = {.begun_ns = 100 * SECOND, .reported_ns = 104 * SECOND};
	struct sample sample;

	/* the first scan stands for the last of five seconds */
	take_until(&table, 105, &sample);
	assert_in_range(sample.sums.cpu_us, 249999, 250001);
	assert_in_range(sample.sums.runq_us, 749999, 750001);
	/* an account that ends two seconds before the totals, and a scan that had waited */
	table.read_ns = 110 * SECOND;
	table.end_ns = 108 * SECOND;
	take_until(&table, 110, &sample);
	assert_in_range(sample.sums.cpu_us, 749999, 750001);
	assert_in_range(sample.sums.runq_us, 2249999, 2250001);
	table.at_ns = table.end_ns;
	table.end_ns = 0;
	take_until(&table, 109, &sample);
	assert_in_range(sample.sums.cpu_us, 249998, 250002);
	assert_in_range(sample.sums.runq_us, 749998, 750002);
	totals_done(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_are_of_the_scans_alone),
		cmocka_unit_test(makers),
		cmocka_unit_test(differences_are_told_once),
		cmocka_unit_test(what_was_told_is_taken_off),
		cmocka_unit_test(others_are_counted),
		cmocka_unit_test(what_was_told_of_others_is_taken_off),
		cmocka_unit_test(what_came_after_the_last_scan_stays),
		cmocka_unit_test(threads_that_are_gone),
		cmocka_unit_test(sleep_alone_is_told_apart),
		cmocka_unit_test(totals_that_stand_are_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
