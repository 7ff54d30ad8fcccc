/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A sleep has the stack of a sample taken within it, and sleeps are added up by stack. */
#include "unit.h"
#include "base/names.h"
#include "report/event_list.h"
#include "sample/trace_kind.h"

#include <stdlib.h>

static struct sleep_stacks stacks;
static struct event_list events;
static const struct trace_kind offcpu = {.name = "offcpu"}, syscalls = {.name = "syscalls"};

static void sampled(int64_t tid, int64_t time_us, int64_t state_us, int64_t ustack,
		    const char *words)
{
	struct sample sample = *sample_absent();

	sample.thread.tid = tid;
	sample.now.state = STATE_SLEEP;
	sample.scan.time_us = time_us;
	sample.now.state_us = state_us;
	sample.stack.ustack = ustack;
	sample.stack.both = name_of_string(words);
	sleep_stacks_note(&stacks, &sample);
}

/* Returns the stack of the sleep; NULL: it has none. */
static const char *slept(int64_t tid, int64_t from_us, int64_t until_us)
{
	struct sample who = *sample_absent();

	who.thread.tid = tid;
	who.now.state = STATE_SLEEP;
	who.scan.time_us = until_us;
	sleep_stacks_fill(&stacks, &who, false, (until_us - from_us) * 1000);
	event_list_add(&events, &offcpu, &who, (until_us - from_us) * 1000);
	return who.stack.both;
}

static void in_its_midst(void **state)
{
	sampled(1, 1500, 500, 7, "main;a");
	assert_string_equal(slept(1, 1000, 2000), "main;a");
	/* before, after, at its ends; another thread */
	assert_null(slept(1, 2000, 3000));
	assert_null(slept(1, 500, 1000));
	assert_null(slept(1, 500, 1500));
	assert_null(slept(1, 1500, 2500));
	assert_null(slept(2, 1000, 2000));
	sleep_stacks_clear(&stacks);
	assert_null(slept(1, 1000, 2000));
}

static void last_two(void **state)
{
	sampled(1, 1500, 500, 7, "main;a");
	sampled(1, 1900, 900, 7, "main;a"); /* still in the sleep that began at 1000 */
	sampled(1, 3500, 500, 8, "main;b");
	assert_string_equal(slept(1, 1000, 2000), "main;a");
	assert_string_equal(slept(1, 3000, 4000), "main;b");
	sampled(1, 5500, 500, 9, "main;c");
	assert_null(slept(1, 1000, 2000));
	assert_string_equal(slept(1, 3000, 4000), "main;b");
	sleep_stacks_clear(&stacks);
}

static void bounded(void **state)
{
	for (int i = 0; i < SLEEP_STACKS_MAX; i++)
		sampled(i + 1, 1500, 500, 7, "main;a");
	assert_string_equal(slept(1, 1000, 2000), "main;a");
	sampled(0, 1500, 500, 7, "main;a");
	assert_null(slept(1, 1000, 2000));
	assert_string_equal(slept(0, 1000, 2000), "main;a");
	sleep_stacks_done(&stacks);
}

static void why_not_run(void **state)
{
	struct sample sample = *sample_absent(), who = *sample_absent();

	sample.thread.tid = who.thread.tid = 1;
	sample.now.state = STATE_RQ;
	sample.scan.time_us = 1500;
	sample.now.state_us = 500;
	sample.now.runq_why = name_of_string("throttled by /x");
	sleep_stacks_note(&stacks, &sample);
	assert_null(slept(1, 1000, 2000)); /* a sleep is not a wait for a CPU */
	who.scan.time_us = 2000;
	sleep_stacks_fill(&stacks, &who, false, 1000000);
	assert_null(who.now.runq_why); /* nor a call */
	sleep_stacks_fill(&stacks, &who, true, 400000);
	assert_null(who.now.runq_why);
	sleep_stacks_fill(&stacks, &who, true, 1000000);
	assert_string_equal(who.now.runq_why, "throttled by /x");
	sleep_stacks_done(&stacks);
}

static void added_up(void **state)
{
	struct sample call = *sample_absent();
	struct sleep_sum *sums;
	size_t count;

	event_list_clear(&events);
	call.thread.tid = 1;
	event_list_add(&events, &syscalls, &call, 1000000); /* not a sleep */
	sampled(1, 1500, 500, 7, "prog+0x1");
	slept(1, 1000, 2000);
	sampled(2, 1500, 500, 8, "main;b");
	slept(2, 1000, 9000);
	sampled(1, 3500, 500, 7, "main;a"); /* the name of the stack is known at present */
	slept(1, 3000, 4000);
	slept(3, 1000, 90000);
	sums = sleep_sums_make(&events, &count);
	assert_int_equal(count, 3);
	assert_string_equal(sums[0].stack, "main;b");
	assert_int_equal(sums[0].count, 1);
	assert_int_equal(sums[0].duration_ns, 8000000);
	assert_string_equal(sums[1].stack, "main;a");
	assert_int_equal(sums[1].count, 2);
	assert_int_equal(sums[1].duration_ns, 2000000);
	assert_null(sums[2].stack);
	assert_int_equal(sums[2].duration_ns, 89000000);
	free(sums);
	sleep_stacks_done(&stacks);
	event_list_done(&events);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_its_midst), cmocka_unit_test(last_two),
		cmocka_unit_test(bounded),	cmocka_unit_test(why_not_run),
		cmocka_unit_test(added_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
