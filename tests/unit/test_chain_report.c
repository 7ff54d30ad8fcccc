/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Report of --chains from samples; golden tests have the whole report */
#include "unit.h"
#include "base/names.h"
#include "report/chain_report.h"

static struct sample waiting(int64_t root_pid, int64_t root_state, const char *root_syscall)
{
	struct sample sample = *sample_absent();

	sample.scan.weight_us = 1000;
	sample.chain.text = name_transient_string("a mutex> b");
	sample.chain.depth = 1;
	sample.chain.root.comm = name_transient_string("b");
	sample.chain.root.pid = root_pid;
	sample.chain.root.state = root_state;
	sample.chain.root.syscall = name_transient_string(root_syscall);
	return sample;
}

static const char *text_in(const struct chain_report *report, enum chain_part batch, size_t row,
			   const char *column)
{
	const struct grid *grid = &report->grids[batch];

	for (size_t i = 0; i < grid->list->count; i++)
		if (!strcmp(grid->list->items[i]->name, column))
			return grid_row(grid, row)[i].text;
	fail();
	return NULL;
}

static int64_t number_in(const struct chain_report *report, enum chain_part batch, size_t row,
			 const char *column)
{
	const struct grid *grid = &report->grids[batch];

	for (size_t i = 0; i < grid->list->count; i++)
		if (!strcmp(grid->list->items[i]->name, column))
			return grid_row(grid, row)[i].number;
	fail();
	return 0;
}

/* A root that was in a call for more than half of the time is reported with it, whatever call it
 * was in last. */
static void mostly_in(void **state)
{
	static const char *const calls[] = {"fsync", "read",  "fsync", "fsync",
					    "write", "fsync", "read"};
	struct tally tally = {.scans = 1};
	struct chain_report report;
	struct sample sample;

	chain_report_init(&report, 0, NULL);
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		sample = waiting(7, STATE_DISK, calls[i]);
		chain_report_add(&report, &sample, EXACT_NOTE_NONE);
	}
	chain_report_fill(&report, &tally);
	assert_int_equal(report.grids[CHAIN_ROOTS].row_count, 1);
	assert_string_equal(text_in(&report, CHAIN_ROOTS, 0, "root_syscall"), "fsync");
	assert_int_equal(report.grids[CHAIN_LOCKS].row_count, 0);
	chain_report_done(&report);
}

/* What a root does is a share of all the time that others waited, also where that is not known. */
static void shares_of_all_time(void **state)
{
	static const struct {
		const char *column;
		int64_t root_state, scans, share;
	} parts[] = {
		{"on", STATE_ON, 1, 50},      {"rq", STATE_RQ, 1, 50},
		{"d", STATE_DISK, 2, 100},    {"s", STATE_SLEEP, 4, 200},
		{"t", STATE_STOPPED, 5, 250}, {"unknown", ABSENT, 7, 350},
	};
	struct tally tally = {.scans = 20};
	struct chain_report report;

	chain_report_init(&report, 0, NULL);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		struct sample sample = waiting(7, parts[i].root_state, NULL);

		for (int64_t scan = 0; scan < parts[i].scans; scan++)
			chain_report_add(&report, &sample, EXACT_NOTE_NONE);
	}
	chain_report_fill(&report, &tally);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		assert_int_equal(number_in(&report, CHAIN_ROOTS, 0, parts[i].column),
				 parts[i].share);
	chain_report_done(&report);
}

/* A thread that no other waits for is no root, and one that waits for itself is in a cycle. */
static void only_chains(void **state)
{
	struct tally tally = {.scans = 1};
	struct chain_report report;
	struct sample sample = waiting(7, STATE_ON, NULL);

	chain_report_init(&report, 0, NULL);
	sample.chain.depth = 0;
	chain_report_add(&report, &sample, EXACT_NOTE_NONE);
	sample = waiting(7, STATE_SLEEP, "futex");
	sample.chain.root.why = name_transient_string("cycle");
	chain_report_add(&report, &sample, EXACT_NOTE_NONE);
	chain_report_fill(&report, &tally);
	assert_int_equal(report.grids[CHAIN_ROOTS].row_count, 0);
	assert_int_equal(report.grids[CHAIN_CYCLES].row_count, 1);
	chain_report_clear(&report);
	chain_report_fill(&report, &tally);
	assert_int_equal(report.grids[CHAIN_CYCLES].row_count, 0);
	chain_report_done(&report);
}

/* Threads of two processes that wait for the same file's lock in the kernel share one line, and so
 * do those that wait for a lock with a name, whatever their files. */
static void locks_of_the_kernel(void **state)
{
	struct tally tally = {.scans = 1};
	struct chain_report report;
	struct sample sample;

	chain_report_init(&report, 0, NULL);
	for (int64_t holder = 1; holder <= 4; holder++) {
		sample = waiting(7, STATE_ON, NULL);
		sample.blocker.kind = name_transient_string("kernel lock");
		sample.blocker.tid = sample.blocker.pid = holder % 2 ? 11 : 12;
		sample.file.name = name_transient_string("/data/log");
		chain_report_add(&report, &sample, EXACT_NOTE_NONE);
		sample.file.name = NULL;
		sample.call.name = name_transient_string("mkdir");
		if (holder == 4)
			chain_report_add(&report, &sample, EXACT_NOTE_NONE);
		sample.file.name = name_transient_string(holder % 2 ? "socket:[1]" : "socket:[2]");
		sample.wait.on = name_transient_string("rtnl_mutex");
		if (holder > 1)
			chain_report_add(&report, &sample, EXACT_NOTE_NONE);
	}
	chain_report_fill(&report, &tally);
	assert_int_equal(report.grids[CHAIN_LOCKS].row_count, 3);
	assert_string_equal(text_in(&report, CHAIN_LOCKS, 1, "lock"), "rtnl_mutex");
	assert_string_equal(text_in(&report, CHAIN_LOCKS, 0, "lock"), "kernel lock /data/log");
	assert_string_equal(text_in(&report, CHAIN_LOCKS, 2, "lock"), "kernel lock mkdir");
	assert_int_equal(number_in(&report, CHAIN_LOCKS, 0, "holders"), 2);
	assert_int_equal(number_in(&report, CHAIN_LOCKS, 0, "changes"), 3);
	chain_report_done(&report);
}

/* A sample that is taken again stands for more scans, and says nothing of who holds the lock now.
 */
static void samples_again(void **state)
{
	struct exact_note again = {.part = EXACT_PART_NONE, .again = true};
	struct tally tally = {.scans = 8};
	struct chain_report report;
	struct sample sample;

	chain_report_init(&report, 0, NULL);
	sample = waiting(7, STATE_ON, NULL);
	sample.blocker.kind = name_transient_string("kernel lock");
	sample.file.name = name_transient_string("/data/log");
	sample.scan.weight_us = 50000;
	for (int64_t holder = 1; holder <= 4; holder++) {
		sample.blocker.tid = sample.blocker.pid = holder;
		sample.scan.repeats = holder == 4 ? 4 : 0;
		sample.scan.weight_us = 50000 * (1 + sample.scan.repeats);
		chain_report_add(&report, &sample, holder == 4 ? again : EXACT_NOTE_NONE);
	}
	chain_report_fill(&report, &tally);
	assert_int_equal(report.grids[CHAIN_LOCKS].row_count, 1);
	assert_int_equal(number_in(&report, CHAIN_ROOTS, 0, "waiting"), 100);
	assert_int_equal(number_in(&report, CHAIN_ROOTS, 0, "seconds"), 40);
	chain_report_done(&report);
	chain_report_init(&report, 0, NULL);
	for (int64_t holder = 11; holder <= 14; holder++) {
		sample.blocker.tid = holder;
		chain_report_add(&report, &sample, holder == 13 ? again : EXACT_NOTE_NONE);
	}
	chain_report_fill(&report, &tally);
	assert_int_equal(number_in(&report, CHAIN_LOCKS, 0, "holders"), 4);
	assert_int_equal(number_in(&report, CHAIN_LOCKS, 0, "changes"), 2);
	chain_report_done(&report);
}

static void taken(struct chain_report *report, struct sample sample)
{
	const struct scan batch = {.samples = &sample, .count = 1};

	chain_report_note(report, &batch);
	chain_report_add(report, &sample, EXACT_NOTE_NONE);
}

static struct sample seen(int64_t tid, const char *stack, bool names_open)
{
	struct sample sample = *sample_absent();

	sample.thread.tid = tid;
	sample.scan.weight_us = 1000;
	sample.stack.both = name_transient_string(stack);
	sample.stack.names_open = names_open;
	return sample;
}

/* A root has the stacks of the scans in which others waited for it, wherever in a scan it comes. */
static void stacks_of_roots(void **state)
{
	static const struct {
		const char *stack;
		bool names_open;
		int victims;
	} scans[] = {{"main;sync", false, 4},
		     {"main;write", false, 1},
		     {"main;?", true, 2},
		     {NULL, false, 1}};
	struct tally tally = {.scans = 4};
	struct chain_report report;
	struct sample victim = waiting(7, STATE_DISK, "fsync");
	size_t at = STACK_LINE_NONE;

	victim.chain.root.tid = 8;
	chain_report_init(&report, 2, NULL);
	for (size_t i = 0; i < sizeof(scans) / sizeof(*scans); i++) {
		taken(&report, victim);
		if (scans[i].stack)
			taken(&report, seen(8, scans[i].stack, scans[i].names_open));
		taken(&report, seen(9, "other", false));
		for (int more = 1; more < scans[i].victims; more++)
			taken(&report, victim);
		chain_report_end_scan(&report);
	}
	chain_report_fill(&report, &tally);
	at = stack_lines_next(&report.stacks, 0, at);
	assert_string_equal(stack_line_frames(&report.stacks, at), "main;sync");
	assert_int_equal(stack_line_weight_us(&report.stacks, at), 4000);
	at = stack_lines_next(&report.stacks, 0, at);
	assert_null(stack_line_frames(&report.stacks, at));
	assert_int_equal(stack_line_weight_us(&report.stacks, at), 3000);
	at = stack_lines_next(&report.stacks, 0, at);
	assert_string_equal(stack_line_frames(&report.stacks, at), "main;write");
	assert_int_equal(stack_lines_next(&report.stacks, 0, at), STACK_LINE_NONE);
	chain_report_done(&report);
}

/* A victim that was asleep for 4 s, 3 of its 4 samples then with one root, and on a CPU once. */
static void times_are_shared_out(void **state)
{
	struct exact_times times = {.shared = 1u << TIME_ON | 1u << TIME_ASLEEP};
	struct tally tally = {.scans = 5};
	struct chain_report report;

	chain_report_init(&report, 0, &times);
	exact_times_at(&times, 5000000);
	for (int i = 0; i < 5; i++) {
		struct sample sample = waiting(i < 3 ? 7 : 8, STATE_DISK, "fsync");

		sample.thread.tid = 5;
		sample.thread.start_ns = 1;
		sample.scan.time_us = (i + 1) * 1000000;
		sample.scan.weight_us = 900000;
		sample.now.state = i < 4 ? STATE_SLEEP : STATE_ON;
		sample.sums.cpu_us = i < 4 ? 0 : 1000000;
		sample.sums.sleep_us = i < 4 ? 1000000 : 0;
		sample.sums.runq_us = sample.sums.dwait_us = 0;
		sample.blocker.kind = name_transient_string("mutex");
		sample.blocker.tid = sample.blocker.pid = 11;
		sample.call.arg[0] = i < 3 ? 0x100 : 0x200;
		if (i == 4)
			sample.chain.text = NULL;
		chain_report_add(&report, &sample, exact_times_add(&times, &sample));
	}
	group_tables_share_out(&times);
	chain_report_fill(&report, &tally);
	assert_int_equal(report.grids[CHAIN_ROOTS].row_count, 2);
	assert_int_equal(number_in(&report, CHAIN_ROOTS, 0, "root_pid"), 7);
	assert_int_equal(number_in(&report, CHAIN_ROOTS, 0, "seconds"), 300);
	assert_int_equal(number_in(&report, CHAIN_ROOTS, 0, "d"), 1000);
	assert_int_equal(number_in(&report, CHAIN_ROOTS, 1, "seconds"), 100);
	assert_int_equal(report.grids[CHAIN_LOCKS].row_count, 2);
	assert_string_equal(text_in(&report, CHAIN_LOCKS, 0, "lock"), "mutex 0x100");
	assert_int_equal(number_in(&report, CHAIN_LOCKS, 0, "seconds"), 300);
	assert_int_equal(number_in(&report, CHAIN_LOCKS, 1, "seconds"), 100);
	chain_report_done(&report);
	exact_times_done(&times);
}

static void more_than_are_kept(void **state)
{
	struct tally tally = {.scans = 1};
	struct chain_report report;
	struct sample sample;

	chain_report_init(&report, 0, NULL);
	for (int64_t pid = 1; pid <= CHAIN_LINES_MAX + 10; pid++) {
		sample = waiting(pid, STATE_ON, NULL);
		chain_report_add(&report, &sample, EXACT_NOTE_NONE);
	}
	/* a thread that has a line already */
	sample = waiting(3, STATE_ON, NULL);
	chain_report_add(&report, &sample, EXACT_NOTE_NONE);
	chain_report_fill(&report, &tally);
	assert_int_equal(report.refused, 10);
	assert_int_equal(report.grids[CHAIN_ROOTS].row_count, CHAIN_LINES_MAX);
	chain_report_done(&report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mostly_in),
		cmocka_unit_test(shares_of_all_time),
		cmocka_unit_test(only_chains),
		cmocka_unit_test(locks_of_the_kernel),
		cmocka_unit_test(samples_again),
		cmocka_unit_test(stacks_of_roots),
		cmocka_unit_test(times_are_shared_out),
		cmocka_unit_test(more_than_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
