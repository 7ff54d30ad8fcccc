/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is found out later about a wait is filled in for its samples before. */
#include "unit.h"
#include "base/names.h"
#include "base/text.h"
#include "report/late_waits.h"

static struct late_waits waits;
static struct text given;

static void take(void *to, const struct sample *sample, struct exact_note note)
{
	(void)to;
	text_add_format(&given, "%d:%s:%u;", (int)sample->tid,
			sample->waits_on ? sample->waits_on : "-", note.part);
}

/* A sample of a thread that has waited since `since`. */
static struct sample sample_of(int tid, const char *file, int time, int since, const char *waits_on,
			       bool open)
{
	struct sample sample = sample_absent;

	sample.tid = tid;
	sample.pid = tid / 10;
	sample.state = DOING_SLEEP;
	sample.time_us = (int64_t)time * 1000000;
	sample.state_us = (int64_t)(time - since) * 1000000;
	sample.syscall_nr = 7;
	sample.filename = name_of_string(file);
	sample.waits_on = name_of_string(waits_on);
	sample.wait_open = open;
	return sample;
}

static bool hold(struct sample sample)
{
	static uint32_t number;

	return late_waits_hold(&waits, &sample, (struct exact_note){number++, true});
}

static const char *end(void)
{
	text_clear(&given);
	late_waits_end(&waits, take, NULL);
	return text_string(&given);
}

static void filled_in(void **state)
{
	(void)state;
	/* known at once: nothing is held */
	assert_false(hold(sample_of(10, "socket:[1]", 5, 1, "tcp a", false)));
	assert_string_equal(end(), "");
	/* of the same file, also of another thread of the process and another wait */
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
	(void)state;
	assert_true(hold(sample_of(10, NULL, 6, 1, "2 fds", true)));
	assert_true(hold(sample_of(11, NULL, 6, 1, "2 fds", true)));
	assert_true(hold(sample_of(10, NULL, 9, 8, "2 fds", true)));
	assert_false(hold(sample_of(10, NULL, 7, 1, "2 fds: x", false)));
	/* the same wait alone: a set may have others in it the next time */
	assert_string_equal(end(), "10:2 fds: x:8;11:2 fds:9;10:2 fds:10;");
}

static void bounded(void **state)
{
	(void)state;
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
		cmocka_unit_test(filled_in),
		cmocka_unit_test(without_file),
		cmocka_unit_test(bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
