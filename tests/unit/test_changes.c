/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What changed between two times: threads that go from one thing to the next at random, of which
 * one is changed; or none. */
#include "report/changes.h"
#include "unit.h"

#include <math.h>
#include <string.h>

#define SCAN_US 50000ll
#define SLICE_SCANS 10
#define SCANS 600
#define THREADS_MAX 40
#define ON 1
#define SLEEP 2

enum { PROGRAM, STATE, CALL, COLUMNS };

/* What threads of a program do: computing and two waits, with the mean length of each in scans. A
 * thread does one of them after the other, each with its share of the times. */
struct thread {
	uint32_t program;
	double lengths[3], shares[3];
	int doing, since;
};

static const uint32_t states[] = {ON, SLEEP, SLEEP};

static uint64_t seed;

static double chance(void)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (double)(seed >> 11) / (double)(1ull << 53);
}

/* Picks what a thread does next. */
static int next_thing(const struct thread *thread)
{
	double at = chance() * (thread->shares[0] + thread->shares[1] + thread->shares[2]);

	if (at < thread->shares[0])
		return 0;
	return at < thread->shares[0] + thread->shares[1] ? 1 : 2;
}

static void scan_add(struct changes *changes, enum change_side side, struct thread *thread)
{
	uint32_t values[COLUMNS];
	int doing;

	if (chance() * thread->lengths[thread->doing] < 1) {
		thread->doing = next_thing(thread);
		thread->since = 0;
	}
	doing = thread->doing;
	thread->since++;
	values[PROGRAM] = thread->program;
	values[STATE] = states[doing];
	values[CALL] = doing ? (uint32_t)doing : 0;
	changes_add(changes, side, values, SCAN_US, 1, doing > 0,
		    doing ? thread->since * SCAN_US : 0);
}

static void side_add(struct changes *changes, enum change_side side, const struct thread *threads,
		     size_t count, int scans)
{
	struct thread own[THREADS_MAX];
	int64_t elapsed_us = 0;

	memcpy(own, threads, count * sizeof(*own));
	for (int scan = 0; scan < scans; scan++) {
		int64_t merged = changes->slices[side].merged ? changes->slices[side].merged : 1;

		for (size_t i = 0; i < count; i++)
			scan_add(changes, side, &own[i]);
		elapsed_us += SCAN_US;
		if (elapsed_us < SLICE_SCANS * SCAN_US * merged)
			continue;
		changes_end_slice(changes, side, elapsed_us);
		elapsed_us = 0;
	}
	if (elapsed_us)
		changes_end_slice(changes, side, elapsed_us);
}

static struct changes changes_new(void)
{
	return (struct changes){.column_count = COLUMNS,
				.program_column = PROGRAM,
				.state_column = STATE,
				.on_value = ON};
}

/* Four programs of some threads each. Returns their number. */
static size_t load(struct thread threads[THREADS_MAX])
{
	size_t count = 0;

	for (uint32_t program = 1; program <= 4; program++)
		for (uint32_t i = 0; i < program + 1; i++)
			threads[count++] = (struct thread){
				.program = program, .lengths = {2, 4, 12}, .shares = {4, 2, 1}};
	return count;
}

static bool has_term(const struct change *change, size_t column, uint32_t value)
{
	for (size_t i = 0; i < change->term_count; i++)
		if (change->terms[i].column == column && change->terms[i].value == value)
			return true;
	return false;
}

/* Of pairs of the same load one in a hundred may be thought different. */
static void same_load(void **state)
{
	int found = 0;

	for (seed = 1; seed < 200; seed++) {
		uint64_t before = seed;
		struct changes changes = changes_new();
		struct thread threads[THREADS_MAX];
		size_t count = load(threads);

		side_add(&changes, SIDE_BEFORE, threads, count, SCANS);
		side_add(&changes, SIDE_AFTER, threads, count, SCANS);
		changes_find(&changes);
		assert_int_equal(changes.refused.length, 0);
		assert_true(changes.searched > 10);
		found += changes.count > 0;
		changes_done(&changes);
		seed = before;
	}
	assert_in_range(found, 0, 2);
}

/* A change is found first, with the columns that tell it; in some pairs all waits of the kind are
 * more by chance, and one column does. */
static void one_change(void **state)
{
	int right = 0, exact = 0, missed = 0;

	for (uint64_t pair = 1; pair <= 100; pair++) {
		struct changes changes = changes_new();
		struct thread threads[THREADS_MAX];
		size_t count = load(threads);
		const struct change *first = changes.found;

		seed = pair;
		side_add(&changes, SIDE_BEFORE, threads, count, SCANS);
		/* the second wait of program 4 is ten times as long */
		for (size_t i = 0; i < count; i++)
			if (threads[i].program == 4)
				threads[i].lengths[2] *= 10;
		side_add(&changes, SIDE_AFTER, threads, count, SCANS);
		changes_find(&changes);
		missed += !changes.count;
		right += changes.count && has_term(first, CALL, 2) && change_difference(first) > 0;
		exact += changes.count && first->term_count == 2 && has_term(first, PROGRAM, 4);
		changes_done(&changes);
	}
	assert_in_range(missed, 0, 3);
	assert_in_range(right, 95, 100);
	assert_in_range(exact, 90, 100);
}

/* A program that was not there, or is not there any more, is one set with one column. */
static void new_and_gone(void **state)
{
	for (uint64_t pair = 1; pair <= 50; pair++) {
		struct changes changes = changes_new();
		struct thread threads[THREADS_MAX];
		size_t count = load(threads);
		bool gone = pair % 2;

		seed = pair;
		threads[count] =
			(struct thread){.program = 9, .lengths = {4, 4, 1}, .shares = {1, 1, 0}};
		side_add(&changes, SIDE_BEFORE, threads, count + gone, SCANS);
		side_add(&changes, SIDE_AFTER, threads, count + !gone, SCANS);
		changes_find(&changes);
		assert_int_equal(changes.count, 1);
		assert_int_equal(changes.found[0].term_count, 1);
		assert_true(has_term(&changes.found[0], PROGRAM, 9));
		assert_true(change_lacks(&changes.found[0], gone ? SIDE_AFTER : SIDE_BEFORE));
		assert_true(fabs(change_difference(&changes.found[0]) - (gone ? -1 : 1)) < 1e-6);
		changes_done(&changes);
	}
}

/* Twice as many threads of everything is more work; a change beside it is still found. */
static void more_work(void **state)
{
	for (uint64_t pair = 1; pair <= 50; pair++) {
		struct changes changes = changes_new();
		struct thread threads[THREADS_MAX];
		size_t count = load(threads);
		bool changed = pair % 2;

		seed = pair;
		side_add(&changes, SIDE_BEFORE, threads, count, SCANS);
		memcpy(threads + count, threads, count * sizeof(*threads));
		threads[2 * count] = threads[2 * count + 1] =
			(struct thread){.program = 9, .lengths = {1, 4, 1}, .shares = {0, 1, 0}};
		side_add(&changes, SIDE_AFTER, threads, 2 * count + (changed ? 2 : 0), SCANS);
		changes_find(&changes);
		assert_true(changes.normalised);
		assert_true(changes.work > 1.5 && changes.work < 2.7);
		assert_int_equal(changes.count, changed);
		if (changed)
			assert_true(has_term(&changes.found[0], PROGRAM, 9));
		changes_done(&changes);
	}
}

/* Adds slices in which each of some programs has that many threads, that compute all the time. */
static void steady_add(struct changes *changes, enum change_side side, uint32_t first,
		       uint32_t programs, int64_t threads, int slices)
{
	for (int slice = 0; slice < slices; slice++) {
		for (uint32_t i = 0; i < programs; i++)
			changes_add(changes, side, (uint32_t[COLUMNS]){first + i, ON, 0},
				    threads * SLICE_SCANS * SCAN_US, threads * SLICE_SCANS, 0, 0);
		changes_end_slice(changes, side, SLICE_SCANS * SCAN_US);
	}
}

/* Where nearly all time has a value, and there is more of it, that is told: here of one program
 * that does one thing. */
static void all_grow(void **state)
{
	struct changes changes = changes_new();

	steady_add(&changes, SIDE_BEFORE, 1, 1, 5, 20);
	steady_add(&changes, SIDE_AFTER, 1, 1, 6, 20);
	changes_find(&changes);
	assert_int_equal(changes.count, 1);
	assert_true(has_term(&changes.found[0], PROGRAM, 1));
	assert_int_equal(changes.found[0].also_count, 1);
	assert_int_equal(changes.found[0].also[0].column, STATE);
	assert_true(fabs(change_difference(&changes.found[0]) - 1) < 1e-6);
	changes_done(&changes);
}

/* One program that computes twelve times as much, and a second one with a third more, are no more
 * work where the third one has no more. */
static void programs_disagree(void **state)
{
	static const int64_t threads[SIDE_COUNT][3] = {{1, 3, 20}, {12, 4, 19}};
	struct changes changes = changes_new();

	for (int side = 0; side < SIDE_COUNT; side++)
		for (int slice = 0; slice < 20; slice++) {
			for (uint32_t i = 0; i < 3; i++)
				changes_add(&changes, side, (uint32_t[COLUMNS]){1 + i, ON, 0},
					    threads[side][i] * SLICE_SCANS * SCAN_US,
					    threads[side][i] * SLICE_SCANS, 0, 0);
			changes_end_slice(&changes, side, SLICE_SCANS * SCAN_US);
		}
	changes_find(&changes);
	assert_int_equal(changes.programs, 3);
	assert_true(changes.work > 1.3 && !changes.normalised);
	assert_true(changes.count > 0 && has_term(&changes.found[0], PROGRAM, 1));
	changes_done(&changes);
}

static void assert_refused(struct changes *changes, const char *words)
{
	changes_find(changes);
	assert_non_null(strstr(text_string(&changes->refused), words));
	assert_int_equal(changes->count, 0);
	changes_done(changes);
}

/* What can't be compared is refused with the number that differs. */
static void refused(void **state)
{
	struct changes changes = changes_new();

	steady_add(&changes, SIDE_BEFORE, 1, 4, 1, 20);
	steady_add(&changes, SIDE_AFTER, 1, 4, 5, 20);
	assert_refused(&changes, "4 programs used 5 times as much CPU time");
	changes = changes_new();
	steady_add(&changes, SIDE_BEFORE, 1, 4, 1, 20);
	steady_add(&changes, SIDE_AFTER, 4, 4, 1, 20);
	assert_refused(&changes, "have 25 % of the time before, and 25 % of the time after");
	changes = changes_new();
	steady_add(&changes, SIDE_BEFORE, 1, 4, 1, 20);
	steady_add(&changes, SIDE_AFTER, 1, 4, 1, 7);
	assert_refused(&changes, "the time after is too short: 3.5 s");
}

/* Slices are merged where there are many, and a short last one is part of the one before. */
static void slices(void **state)
{
	struct changes changes = changes_new();
	int64_t elapsed_us = 0, us = 0;
	const struct change_row *row;

	for (int scan = 0; scan < 1005; scan++) {
		int64_t merged = changes.slices[SIDE_AFTER].merged;

		changes_add(&changes, SIDE_AFTER, (uint32_t[COLUMNS]){1, ON, 0}, 7, 1, 0, 0);
		if (++elapsed_us % (SLICE_SCANS * (merged ? merged : 1)))
			continue;
		changes_end_slice(&changes, SIDE_AFTER, elapsed_us);
		elapsed_us = 0;
	}
	changes_end_slice(&changes, SIDE_AFTER, elapsed_us);
	row = changes.rows.rows;
	for (size_t i = 0; i < CHANGE_SLICES_MAX; i++) {
		us += row->us[SIDE_AFTER][i];
		elapsed_us += changes.slices[SIDE_AFTER].elapsed_us[i];
	}
	assert_int_equal(us, 7 * 1005);
	assert_in_range(changes.slices[SIDE_AFTER].count, CHANGE_SLICES_LEAST,
			CHANGE_SLICES_MAX - 1);
	changes_done(&changes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_load),	cmocka_unit_test(one_change),
		cmocka_unit_test(new_and_gone), cmocka_unit_test(more_work),
		cmocka_unit_test(all_grow),	cmocka_unit_test(programs_disagree),
		cmocka_unit_test(refused),	cmocka_unit_test(slices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
