/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Facts about a wait that are found later are filled in for its earlier samples. */
#include "unit.h"
#include "base/names.h"
#include "base/text.h"
#include "report/late_waits.h"

#include <stdio.h>
#include <string.h>

static struct late_waits waits;
static struct text given;
static const char *last_ufunc; /* ufunc of the last sample that was taken */

static void take(void *to, const struct sample *sample, struct exact_note note)
{
	last_ufunc = sample->stack.ufunc;
	text_add_format(&given, "%d:%s:%u;", (int)sample->thread.tid,
			sample->wait.on ? sample->wait.on : "-", note.part);
}

/* Makes a sample of a thread that has waited since `since`. */
static struct sample sample_of(int tid, const char *file, int time, int since, const char *waits_on,
			       bool open)
{
	struct sample sample = *sample_absent();

	sample.thread.tid = tid;
	sample.thread.pid = tid / 10;
	sample.now.state = STATE_SLEEP;
	sample.scan.time_us = (int64_t)time * 1000000;
	sample.now.state_us = (int64_t)(time - since) * 1000000;
	sample.call.nr = 7;
	sample.file.name = name_of_string(file);
	sample.wait.on = name_of_string(waits_on);
	sample.wait.open = open;
	return sample;
}

static bool hold(struct sample sample)
{
	static uint32_t number;

	return late_waits_hold(&waits, &sample,
			       (struct exact_note){.part = number++, .began = true});
}

static const char *end(void)
{
	text_clear(&given);
	late_waits_end(&waits, take, NULL);
	return text_string(&given);
}

static void filled_in(void **state)
{
	/* known at once: nothing is held */
	assert_false(hold(sample_of(10, "socket:[1]", 5, 1, "tcp a", false)));
	assert_string_equal(end(), "");
	/* waits on one file, also by another thread of the process and in another wait */
	assert_true(hold(sample_of(10, "socket:[1]", 6, 1, "tcp a", true)));
	assert_true(hold(sample_of(11, "socket:[1]", 6, 2, NULL, true)));
	assert_true(hold(sample_of(20, "socket:[1]", 6, 2, "tcp a", true)));
	assert_true(hold(sample_of(10, "socket:[2]", 6, 2, "tcp c", true)));
	assert_false(hold(sample_of(10, "socket:[1]", 7, 6, "tcp a peer b", false)));
	assert_true(hold(sample_of(10, "socket:[1]", 8, 6, "tcp a", true)));
	assert_string_equal(end(), "10:tcp a peer b:1;11:tcp a peer b:2;20:tcp a:3;10:tcp c:4;"
				   "10:tcp a peer b:6;");
	/* a new interval knows nothing yet */
	assert_true(hold(sample_of(10, "socket:[1]", 9, 6, "tcp a", true)));
	assert_string_equal(end(), "10:tcp a:7;");
}

static void without_file(void **state)
{
	assert_true(hold(sample_of(10, NULL, 6, 1, "2 fds", true)));
	assert_true(hold(sample_of(11, NULL, 6, 1, "2 fds", true)));
	assert_true(hold(sample_of(10, NULL, 9, 8, "2 fds", true)));
	assert_false(hold(sample_of(10, NULL, 7, 1, "2 fds: x", false)));
	/* facts of a set hold for the same wait only: it may have other descriptors the next
	 * time */
	assert_string_equal(end(), "10:2 fds: x:8;11:2 fds:9;10:2 fds:10;");
}

/* Returns the held rows that a new row releases. */
static const char *queue(struct sample sample)
{
	text_clear(&given);
	waits.now_us = sample.scan.time_us;
	late_waits_queue(&waits, &sample, take, NULL);
	return text_string(&given);
}

static const char *pass(int until)
{
	text_clear(&given);
	late_waits_pass(&waits, (int64_t)until * 1000000, take, NULL);
	return text_string(&given);
}

static void rows_in_order(void **state)
{
	const uint32_t none = EXACT_PART_NONE;
	char wanted[128];

	text_clear(&given);
	/* no row before it is held: it passes */
	snprintf(wanted, sizeof(wanted), "1:tcp a:%u;", none);
	assert_string_equal(queue(sample_of(1, "socket:[1]", 5, 1, "tcp a", false)), wanted);
	assert_string_equal(queue(sample_of(10, "socket:[1]", 6, 1, "tcp a", true)), "");
	/* after a row that is held */
	assert_string_equal(queue(sample_of(20, NULL, 6, 1, "pipe", false)), "");
	assert_string_equal(queue(sample_of(30, "socket:[3]", 6, 1, "tcp c", true)), "");
	/* facts found: releases all until the next row that is held */
	snprintf(wanted, sizeof(wanted), "10:tcp a peer b:%u;20:pipe:%u;", none, none);
	assert_string_equal(queue(sample_of(10, "socket:[1]", 7, 1, "tcp a peer b", false)),
			    wanted);
	/* the time to hold a row is over */
	assert_string_equal(pass(5), "");
	snprintf(wanted, sizeof(wanted), "30:tcp c:%u;10:tcp a peer b:%u;", none, none);
	assert_string_equal(pass(6), wanted);
	assert_string_equal(pass(9), "");
	/* at the end */
	assert_string_equal(queue(sample_of(10, "socket:[1]", 10, 1, "tcp a", true)), "");
	snprintf(wanted, sizeof(wanted), "10:tcp a:%u;", none);
	assert_string_equal(end(), wanted);
}

/* Rows are held for the connection alone if only that is requested. */
static void connection_alone(void **state)
{
	struct sample sample = sample_of(10, "socket:[1]", 6, 1, NULL, true);

	sample.file.connection = name_of_string("tcp a");
	assert_string_equal(queue(sample), "");
	sample.wait.open = false;
	sample.now.state = STATE_ON; /* next, it is about to wait */
	assert_string_equal(queue(sample), "");
	sample.now.state = STATE_SLEEP;
	assert_int_equal(strlen(queue(sample)), 3 * strlen("10:-:4294967295;"));
}

/* Functions that get names later, with and without a wait that is held. */
static void names_of_stacks(void **state)
{
	struct sample sample = sample_of(10, NULL, 6, 1, "pipe", false);
	struct sample both = sample_of(10, "pipe:[1]", 6, 1, "pipe", true);

	sample.stack.ustack = both.stack.ustack = 7;
	sample.stack.ufunc = both.stack.ufunc = name_of_string("prog+0x1");
	sample.stack.names_open = both.stack.names_open = true;
	assert_string_equal(queue(sample), "");
	assert_string_equal(queue(both), "");
	/* another stack */
	sample.stack.names_open = false;
	sample.stack.ustack = 8;
	assert_string_equal(queue(sample), "");
	sample.stack.ustack = 7;
	sample.stack.ufunc = name_of_string("main");
	assert_int_equal(strlen(queue(sample)), strlen("10:pipe:4294967295;"));
	assert_ptr_equal(last_ufunc, sample.stack.ufunc);
	assert_int_equal(strlen(queue(sample_of(10, "pipe:[1]", 7, 1, "pipe from x", false))),
			 4 * strlen("10:pipe:4294967295;") + 2 * strlen(" from x"));
	assert_string_equal(end(), "");
}

/* Many rows of which some are always held: facts of others are freed, facts in use remain. */
static void rows_for_long(void **state)
{
	char file[32];
	int given_count = 0;

	for (int i = 0; i < 8 * LATE_WAITS_MAX; i++) {
		snprintf(file, sizeof(file), "pipe:[%d]", i / 2);
		queue(sample_of(10 + i % 7 * 10, file, i, 0, "pipe", true));
		given_count += given.length > 0;
	}
	assert_int_equal(given_count, 7 * LATE_WAITS_MAX);
	assert_true(waits.count == LATE_WAITS_MAX);
	pass(7 * LATE_WAITS_MAX + 10);
	assert_true(waits.fact_count <= (size_t)2 * LATE_WAITS_MAX);
	/* the youngest row still gets its facts */
	queue(sample_of(10 + (8 * LATE_WAITS_MAX - 1) % 7 * 10, file, 8 * LATE_WAITS_MAX, 0,
			"pipe from z", false));
	assert_non_null(strstr(end(), "pipe from z:4294967295;"));
}

static void bounded(void **state)
{
	for (int i = 0; i < LATE_WAITS_MAX; i++)
		assert_true(hold(sample_of(i + 1, "pipe:[1]", 6, 1, "pipe", true)));
	assert_false(hold(sample_of(10, "pipe:[1]", 6, 1, "pipe", true)));
	end();
	assert_true(hold(sample_of(10, "pipe:[1]", 6, 1, "pipe", true)));
	late_waits_done(&waits);
	assert_string_equal(end(), "");
	text_done(&given);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(filled_in),	   cmocka_unit_test(without_file),
		cmocka_unit_test(rows_in_order),   cmocka_unit_test(connection_alone),
		cmocka_unit_test(names_of_stacks), cmocka_unit_test(rows_for_long),
		cmocka_unit_test(bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
