/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Exact times shared out by samples: times of threads, and what a report must make of them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "base/names.h"
#include "report/grid.h"
#include "report/group_split.h"
#include "unit.h"

#define SCAN_US INT64_C(50000)
#define ALL_KINDS ((1u << TIME_KINDS) - 1)

/* State of an interval that is being gathered. */
struct scene {
	struct column_list list;
	struct group_table groups;
	struct exact_times times;
	struct tally tally;
	struct grid grid;
	int64_t now_us;
};

static void scene_begin(struct scene *scene, const char *columns, unsigned int shared,
			enum split_rest rest)
{
	struct error e = {0};

	*scene = (struct scene){.times.shared = shared};
	assert_int_equal(column_list_add(&scene->list, columns, true, &e), 0);
	group_table_init(&scene->groups, &scene->list);
	group_table_split(&scene->groups, &scene->times, rest);
}

static void scene_done(struct scene *scene)
{
	group_table_done(&scene->groups);
	exact_times_done(&scene->times);
	grid_done(&scene->grid);
	names_clear();
}

static struct sample sample_of(int64_t tid, const char *comm, int64_t state, const char *syscall)
{
	struct sample sample = *sample_absent();

	sample.scan.weight_us = SCAN_US;
	sample.thread.tid = tid;
	sample.thread.start_ns = tid;
	sample.thread.comm = name_of_string(comm);
	sample.now.state = state;
	sample.call.name = syscall ? name_of_string(syscall) : NULL;
	sample.now.state_us = 0;
	return sample;
}

static void times_set(struct sample *sample, int64_t cpu_us, int64_t runq_us, int64_t dwait_us,
		      int64_t sleep_us)
{
	sample->sums.cpu_us = cpu_us;
	sample->sums.runq_us = runq_us;
	sample->sums.dwait_us = dwait_us;
	sample->sums.sleep_us = sleep_us;
}

/* Adds all samples of the next scan. */
static void scan(struct scene *scene, struct sample *samples, size_t count)
{
	scene->now_us += SCAN_US;
	exact_times_at(&scene->times, scene->now_us);
	for (size_t i = 0; i < count; i++) {
		samples[i].scan.time_us = scene->now_us;
		group_table_add_noted(&scene->groups, &samples[i],
				      exact_times_add(&scene->times, &samples[i]));
	}
	tally_add(&scene->tally, &(struct scan){.time_us = scene->now_us,
						.weight_us = SCAN_US,
						.samples = samples,
						.count = count});
}

static void account(struct scene *scene, int64_t tid, const char *comm, int64_t cpu_us,
		    int64_t runq_us, int64_t dwait_us, int64_t sleep_us)
{
	struct sample sample = sample_of(tid, comm, ABSENT, NULL);

	sample.scan.weight_us = sample.now.state_us = ABSENT;
	times_set(&sample, cpu_us, runq_us, dwait_us, sleep_us);
	group_table_add_account(&scene->groups, &sample);
}

static void page_end(struct scene *scene)
{
	scene->tally.shared_us = 0;
	group_table_share_out(&scene->groups);
	group_table_end_interval(&scene->groups, &scene->tally);
	exact_times_end_interval(&scene->times);
	grid_fill_groups(&scene->grid, &scene->groups, &scene->tally);
}

/* Returns the number in that column of the row with these values of comm, state and syscall, which
 * are the last three columns. */
static int64_t number_of(const struct scene *scene, size_t column, const char *comm, int64_t state,
			 const char *syscall)
{
	size_t keys = scene->list.count - 3;

	for (size_t row = 0; row < scene->grid.row_count; row++) {
		const union value *values = grid_row(&scene->grid, row);

		if (values[keys].text == (comm ? name_of_string(comm) : NULL) &&
		    values[keys + 1].number == state &&
		    values[keys + 2].text == (syscall ? name_of_string(syscall) : NULL))
			return values[column].number;
	}
	return ABSENT;
}

/* Two system calls with shares of 3 to 1; samples are biased, as they see the thread on a CPU in 4
 * of 10 scans although it was there for 0.9 of the time. */
static void time_is_shared_by_samples_of_its_state(void **state)
{
	struct scene scene;

	scene_begin(&scene, "weight_us,avg_thr,share,cpu_s,sleep_s,comm,state,syscall", ALL_KINDS,
		    REST_GROUPS);
	for (int i = 0; i < 100; i++) {
		bool on = i % 10 < 4;
		struct sample sample = sample_of(7, "db", on ? STATE_ON : STATE_SLEEP,
						 !on	      ? "futex"
						 : i % 4 == 3 ? "write"
							      : "read");

		times_set(&sample, 45000, 0, 0, 5000);
		scan(&scene, &sample, 1);
	}
	page_end(&scene);
	assert_int_equal(scene.grid.row_count, 3);
	assert_int_equal(number_of(&scene, 0, "db", STATE_ON, "read") +
				 number_of(&scene, 0, "db", STATE_ON, "write"),
			 4500000);
	assert_int_equal(number_of(&scene, 0, "db", STATE_ON, "write"), 4500000 / 4);
	assert_int_equal(number_of(&scene, 0, "db", STATE_SLEEP, "futex"), 500000);
	assert_int_equal(number_of(&scene, 1, "db", STATE_SLEEP, "futex"), 10);	 /* 0.10 threads */
	assert_int_equal(number_of(&scene, 2, "db", STATE_SLEEP, "futex"), 100); /* 10.0 % */
	assert_int_equal(number_of(&scene, 3, "db", STATE_ON, "write"), 1125);	 /* cpu_s */
	assert_int_equal(number_of(&scene, 3, "db", STATE_SLEEP, "futex"), ABSENT);
	assert_int_equal(number_of(&scene, 4, "db", STATE_SLEEP, "futex"), 500);
	assert_int_equal(scene.tally.shared_us, 5000000);
	assert_int_equal(scene.tally.covered_us[TIME_ON], scene.tally.all_us[TIME_ON]);
	scene_done(&scene);
}

static void rounding_loses_nothing(void **state)
{
	static const char *const calls[] = {"a", "b", "c", "d", "e", "f", "g"};
	struct scene scene;
	int64_t us = 0;

	scene_begin(&scene, "weight_us,comm,state,syscall", ALL_KINDS, REST_GROUPS);
	for (size_t i = 0; i < 7; i++) {
		struct sample sample = sample_of(7, "db", STATE_ON, calls[i]);

		times_set(&sample, i ? 0 : 1000, 0, 0, 0);
		scan(&scene, &sample, 1);
	}
	page_end(&scene);
	for (size_t i = 0; i < 7; i++) {
		int64_t part = number_of(&scene, 0, "db", STATE_ON, calls[i]);

		assert_in_range(part, 142, 143);
		us += part;
	}
	assert_int_equal(us, 1000);
	scene_done(&scene);
}

/* Unseen time: a thread seen asleep only was on a CPU as well; another was never seen, and others
 * ended. */
static void unseen_time_has_rows(void **state)
{
	struct scene scene;

	scene_begin(&scene, "weight_us,samples,comm,state,syscall", ALL_KINDS, REST_GROUPS);
	for (int i = 0; i < 10; i++) {
		struct sample sample = sample_of(7, "db", STATE_SLEEP, "futex");

		times_set(&sample, 1000, 0, 0, 49000);
		scan(&scene, &sample, 1);
	}
	account(&scene, 8, "cron", 300, 200, 0, 1000);
	account(&scene, ABSENT, "sh", 70000, 4000, 0, 0);
	account(&scene, ABSENT, "sh", 10000, 0, 0, 0);
	page_end(&scene);
	assert_int_equal(number_of(&scene, 0, "db", STATE_SLEEP, "futex"), 490000);
	assert_int_equal(number_of(&scene, 0, "db", STATE_ON, NULL), 10000);
	assert_int_equal(number_of(&scene, 1, "db", STATE_ON, NULL), 0);
	assert_int_equal(number_of(&scene, 0, "cron", STATE_ON, NULL), 300);
	assert_int_equal(number_of(&scene, 0, "cron", STATE_RQ, NULL), 200);
	assert_int_equal(number_of(&scene, 0, "cron", STATE_SLEEP, NULL), 1000);
	assert_int_equal(number_of(&scene, 0, "sh", STATE_ON, NULL), 80000);
	assert_int_equal(number_of(&scene, 0, "sh", STATE_RQ, NULL), 4000);
	assert_int_equal(scene.tally.all_us[TIME_ON], 10000 + 300 + 80000);
	assert_int_equal(scene.tally.covered_us[TIME_ON], 0);
	assert_int_equal(scene.tally.covered_us[TIME_ASLEEP], 490000);
	assert_int_equal(scene.grid.row_count, 7);
	scene_done(&scene);
}

/* Remainders that would be 0.00 s in rows of their own become one row with only the state. */
static void small_rests_are_one_row(void **state)
{
	struct scene scene;

	scene_begin(&scene, "weight_us,comm,state,syscall", ALL_KINDS, REST_LARGE_GROUPS);
	scan(&scene, NULL, 0);
	account(&scene, 8, "cron", 300, 0, 0, 0);
	account(&scene, 9, "sshd", 400, 0, 0, 0);
	account(&scene, 10, "top", 5000, 0, 0, 0);
	page_end(&scene);
	assert_int_equal(scene.grid.row_count, 2);
	assert_int_equal(number_of(&scene, 0, NULL, STATE_ON, NULL), 700);
	assert_int_equal(number_of(&scene, 0, "top", STATE_ON, NULL), 5000);
	scene_done(&scene);
}

/* Without -a sleep is not shared out: part of a thread's sleep is shown, as sampled. */
static void some_states_count_samples(void **state)
{
	struct scene scene;

	scene_begin(&scene, "weight_us,sleep_s,comm,state,syscall",
		    ALL_KINDS & ~(1u << TIME_ASLEEP), REST_GROUPS);
	for (int i = 0; i < 20; i++) {
		struct sample sample = sample_of(7, "db", i % 2 ? STATE_ON : STATE_SLEEP, "poll");

		times_set(&sample, 10000, 0, 0, 40000);
		scan(&scene, &sample, 1);
	}
	page_end(&scene);
	assert_int_equal(number_of(&scene, 0, "db", STATE_ON, "poll"), 200000);
	assert_int_equal(number_of(&scene, 0, "db", STATE_SLEEP, "poll"), 10 * SCAN_US);
	assert_int_equal(number_of(&scene, 1, "db", STATE_SLEEP, "poll"), 800);
	scene_done(&scene);
}

/* A recording made without -a has samples of part of a thread's sleep, and all of it in
 * sleep_us. */
static void hidden_sleep_is_nobodys(void **state)
{
	struct scene scene;

	scene_begin(&scene, "weight_us,comm,state,syscall", ALL_KINDS, REST_GROUPS);
	for (int i = 0; i < 40; i++) {
		struct sample sample = sample_of(7, "db", STATE_SLEEP, "recvfrom");

		times_set(&sample, 0, 0, 0, 10 * SCAN_US);
		scan(&scene, &sample, i % 10 == 9);
	}
	page_end(&scene);
	assert_int_equal(number_of(&scene, 0, "db", STATE_SLEEP, "recvfrom"), 4 * SCAN_US);
	scene_done(&scene);
}

static void without_times_samples_count(void **state)
{
	struct scene scene;

	scene_begin(&scene, "weight_us,avg_thr,comm,state,syscall", ALL_KINDS, REST_GROUPS);
	for (int i = 0; i < 4; i++) {
		struct sample samples[2] = {sample_of(7, "db", STATE_ON, i ? "read" : NULL),
					    sample_of(ABSENT, "db", STATE_ZOMBIE, NULL)};

		scan(&scene, samples, 2);
	}
	page_end(&scene);
	assert_int_equal(number_of(&scene, 0, "db", STATE_ON, "read"), 3 * SCAN_US);
	assert_int_equal(number_of(&scene, 1, "db", STATE_ON, "read"), 75);
	assert_int_equal(number_of(&scene, 0, "db", STATE_ZOMBIE, NULL), 4 * SCAN_US);
	assert_int_equal(scene.tally.shared_us, 0);
	scene_done(&scene);
}

/* A sample whose times reach back to before the interval. */
static void time_before_the_interval_is_not_reported(void **state)
{
	struct scene scene;
	struct sample sample;

	scene_begin(&scene, "weight_us,comm,state,syscall", ALL_KINDS, REST_GROUPS);
	sample = sample_of(7, "db", STATE_ON, "read");
	times_set(&sample, 10 * SCAN_US, 0, 30 * SCAN_US, 0);
	scan(&scene, &sample, 1);
	page_end(&scene);
	assert_int_equal(number_of(&scene, 0, "db", STATE_ON, "read"), SCAN_US / 4);
	assert_int_equal(number_of(&scene, 0, "db", STATE_DISK, NULL), SCAN_US * 3 / 4);
	scene_done(&scene);
}

/* Interval ends, and sharing out in the middle of one, leave the sums as they are. */
static void sums_hold_across_intervals(void **state)
{
	struct scene scene;

	scene_begin(&scene, "weight_us,comm,state,syscall", ALL_KINDS, REST_GROUPS);
	for (int page = 0; page < 2; page++) {
		for (int i = 0; i < 10; i++) {
			struct sample sample = sample_of(7, "db", STATE_ON, i % 2 ? "a" : "b");

			times_set(&sample, 30000, 0, 0, 20000);
			scan(&scene, &sample, 1);
			if (i == 4) {
				group_table_share_out(&scene.groups);
				exact_times_clear(&scene.times);
			}
		}
		page_end(&scene);
		assert_int_equal(number_of(&scene, 0, "db", STATE_ON, "a") +
					 number_of(&scene, 0, "db", STATE_ON, "b"),
				 300000);
		assert_int_equal(number_of(&scene, 0, "db", STATE_SLEEP, NULL), 200000);
		group_table_clear(&scene.groups);
	}
	scene_done(&scene);
}

/* Error of ten looks at a thread that was in one of two calls each time: larger than of a hundred.
 * Two long waits that samples followed have no error, however often they were seen. */
static void error_goes_by_episodes(void **state)
{
	int64_t errors[3];

	for (int look = 0; look < 3; look++) {
		static const int scans[] = {10, 100, 100};
		struct scene scene;

		scene_begin(&scene, "error,comm,state,syscall", ALL_KINDS, REST_GROUPS);
		for (int i = 0; i < scans[look]; i++) {
			bool first = look == 2 ? i < 50 : i % 2;
			struct sample sample = sample_of(7, "db", STATE_DISK, first ? "a" : "b");

			if (look == 2)
				sample.now.state_us = i % 50 * SCAN_US;
			times_set(&sample, 0, 0, 10 * SCAN_US / scans[look], 0);
			scan(&scene, &sample, 1);
		}
		page_end(&scene);
		errors[look] = number_of(&scene, 0, "db", STATE_DISK, "a");
		scene_done(&scene);
	}
	assert_in_range(errors[0], 78, 80); /* 0.5 s * sqrt(1/2 * 1/2 / 10) */
	assert_in_range(errors[1], 24, 26);
	assert_in_range(errors[2], 0, 1); /* both wait episodes were followed */
}

/* Groups by columns that a thread keeps, and its state, need no estimate. */
static void error_of_a_thread_is_none(void **state)
{
	struct scene scene;
	struct sample sample;

	scene_begin(&scene, "error,seconds,tid,comm,state", ALL_KINDS, REST_GROUPS);
	sample = sample_of(7, "db", STATE_DISK, "a");
	times_set(&sample, 0, 0, SCAN_US, 0);
	scan(&scene, &sample, 1);
	page_end(&scene);
	assert_int_equal(grid_row(&scene.grid, 0)[0].number, 0);
	assert_int_equal(grid_row(&scene.grid, 0)[1].number, 5);
	scene_done(&scene);
}

/* A second table of the same samples, as for --stacks, and one of some of them. */
static void other_tables_agree(void **state)
{
	struct group_table few;
	struct scene scene;

	scene_begin(&scene, "weight_us,comm,state,syscall", ALL_KINDS, REST_GROUPS);
	group_table_init(&few, &scene.list);
	group_table_split(&few, &scene.times, REST_NOWHERE);
	for (int i = 0; i < 10; i++) {
		struct sample sample = sample_of(7, "db", STATE_ON, i < 4 ? "a" : "b");
		struct exact_note note;

		times_set(&sample, 20000, 0, 0, 30000);
		scene.now_us += SCAN_US;
		exact_times_at(&scene.times, scene.now_us);
		note = exact_times_add(&scene.times, &sample);
		group_table_add_noted(&scene.groups, &sample, note);
		if (i < 4)
			group_table_add_noted(&few, &sample, note);
	}
	group_table_share_out(&few);
	page_end(&scene);
	assert_int_equal(number_of(&scene, 0, "db", STATE_ON, "a"), 80000);
	assert_int_equal(few.count, 1);
	assert_int_equal(group_weight_us(&few, group_at(&few, 0)), 80000);
	group_table_done(&few);
	scene_done(&scene);
}

/* A thread was on a CPU for 0.9 of the time, and only its samples in read are wanted, 3 of 4: the
 * refused ones have their part, and time that no sample saw is not shared out. */
static void refused_samples_have_their_part(void **state)
{
	struct scene scene;
	struct exact_note note;

	scene_begin(&scene, "weight_us,avg_thr,share,comm,state,syscall", ALL_KINDS, REST_LEFT_OUT);
	for (int i = 0; i < 8; i++) {
		const char *call = i % 4 ? "read" : "write";
		struct sample sample = sample_of(1, "db", i < 4 ? STATE_ON : STATE_SLEEP, call);
		bool wanted = i % 4 && i < 4;

		times_set(&sample, 45000, 1000, 0, 4000);
		scene.now_us += SCAN_US;
		exact_times_at(&scene.times, scene.now_us);
		note = exact_times_add(&scene.times, &sample);
		if (wanted)
			group_table_add_noted(&scene.groups, &sample, note);
		tally_add(&scene.tally, &(struct scan){.time_us = scene.now_us,
						       .weight_us = SCAN_US,
						       .samples = &sample,
						       .count = wanted});
	}
	group_table_share_out(&scene.groups);
	group_table_end_interval(&scene.groups, &scene.tally);
	grid_fill_groups(&scene.grid, &scene.groups, &scene.tally);
	assert_int_equal(scene.grid.row_count, 1);
	assert_int_equal(number_of(&scene, 0, "db", STATE_ON, "read"), 8 * 45000 * 3 / 4);
	assert_int_equal(number_of(&scene, 1, "db", STATE_ON, "read"), 68);
	assert_int_equal(number_of(&scene, 2, "db", STATE_ON, "read"), 1000);
	scene_done(&scene);
}

/* A sample taken again adds its weight alone: the thread's time, and looks at it, are the same. */
static void samples_again_have_weight(void **state)
{
	struct sample sample = sample_of(1, "db", STATE_SLEEP, "read");
	struct exact_note note;
	struct scene scene;

	scene_begin(&scene, "weight_us,comm,state,syscall", ALL_KINDS, REST_GROUPS);
	times_set(&sample, 0, 0, 0, 40000);
	scan(&scene, &sample, 1);
	sample.scan.weight_us = 3 * SCAN_US;
	sample.scan.repeats = 2;
	note = exact_times_add_again(&scene.times, &sample);
	assert_true(note.again);
	assert_false(note.began);
	group_table_add_noted(&scene.groups, &sample, note);
	assert_int_equal(scene.times.count, 1);
	assert_int_equal(scene.times.threads[0].parts[TIME_ASLEEP].us, 40000);
	assert_int_equal(scene.times.threads[0].parts[TIME_ASLEEP].sampled_us, 4 * SCAN_US);
	assert_int_equal(scene.times.threads[0].parts[TIME_ASLEEP].episodes, 1);
	assert_int_equal(group_samples(&scene.groups, group_at(&scene.groups, 0)), 4);
	page_end(&scene);
	assert_int_equal(number_of(&scene, 0, "db", STATE_SLEEP, "read"), 40000);
	sample.thread.tid = ABSENT;
	assert_int_equal(exact_times_add_again(&scene.times, &sample).part, EXACT_PART_NONE);
	scene_done(&scene);
}

/* Weight of a sample: its part of 0.36 s that four samples saw; its own weight if the thread, or
 * its time in that state, is not known. */
static void a_sample_stands_for_its_part(void **state)
{
	struct sample sample = sample_of(1, "db", STATE_ON, "read"), other;
	struct scene scene;

	scene_begin(&scene, "weight_us,comm,state,syscall", ALL_KINDS & ~(1u << TIME_ASLEEP),
		    REST_GROUPS);
	times_set(&sample, 90000, 0, 0, 10000);
	scene.now_us = 4 * SCAN_US;
	for (int i = 0; i < 4; i++)
		scan(&scene, &sample, 1);
	group_table_share_out(&scene.groups);
	assert_int_equal(exact_sample_us(&scene.times, &sample), 90000);
	other = sample_of(1, "db", STATE_SLEEP, "read");
	assert_int_equal(exact_sample_us(&scene.times, &other), SCAN_US);
	other = sample_of(2, "db", STATE_ON, "read");
	assert_int_equal(exact_sample_us(&scene.times, &other), SCAN_US);
	other.thread.tid = 1; /* another thread that began at another time */
	assert_int_equal(exact_sample_us(&scene.times, &other), SCAN_US);
	exact_times_end_interval(&scene.times);
	assert_int_equal(exact_sample_us(&scene.times, &sample), SCAN_US);
	scene_done(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(time_is_shared_by_samples_of_its_state),
		cmocka_unit_test(rounding_loses_nothing),
		cmocka_unit_test(unseen_time_has_rows),
		cmocka_unit_test(small_rests_are_one_row),
		cmocka_unit_test(some_states_count_samples),
		cmocka_unit_test(hidden_sleep_is_nobodys),
		cmocka_unit_test(without_times_samples_count),
		cmocka_unit_test(time_before_the_interval_is_not_reported),
		cmocka_unit_test(sums_hold_across_intervals),
		cmocka_unit_test(error_goes_by_episodes),
		cmocka_unit_test(error_of_a_thread_is_none),
		cmocka_unit_test(other_tables_agree),
		cmocka_unit_test(refused_samples_have_their_part),
		cmocka_unit_test(a_sample_stands_for_its_part),
		cmocka_unit_test(samples_again_have_weight),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
