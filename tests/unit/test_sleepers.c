/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A report without samples: counts, groups, wording */
#include "unit.h"
#include "base/names.h"
#include "render/renderer.h"
#include "report/sleepers.h"
#include "report/tally.h"

static void take(struct sleepers *sleepers, int64_t state, int64_t kthread, const char *comm,
		 const char *why)
{
	struct sample sample = *sample_absent();

	sample.now.state = state;
	sample.thread.kthread = kthread;
	sample.thread.comm = comm ? name_transient_string(comm) : NULL;
	sample.call.name = why ? name_transient_string("read") : NULL;
	sample.wait.why = why && *why ? name_transient_string(why) : NULL;
	sample_derive(&sample, sleepers_needs(sleepers));
	sleepers_take(sleepers, &sample);
}

static void expect_shown(struct sleepers *sleepers, const char *expected)
{
	const struct tally tally = {.scans = 1};
	struct interval interval = {.tally = &tally};
	struct text text = {0};

	interval_add_sleepers(&text, &interval, sleepers);
	assert_string_equal(text_string(&text), expected);
	text_done(&text);
}

static void largest_groups(void **state)
{
	struct sleepers sleepers = {0};

	sleepers_begin(&sleepers);
	for (int i = 0; i < 3; i++)
		take(&sleepers, STATE_SLEEP, 0, i ? "db-17" : "db-4", "server");
	for (int i = 0; i < 2; i++)
		take(&sleepers, STATE_SLEEP, 0, "shell", "pipe");
	for (char name[] = "a"; *name <= 'e'; ++*name)
		take(&sleepers, STATE_SLEEP, 0, name, "pipe");
	take(&sleepers, STATE_IDLE, 1, "kworker/0:1", NULL);
	take(&sleepers, STATE_SLEEP, 1, "kthreadd", NULL);
	take(&sleepers, STATE_ZOMBIE, 0, "gone", NULL);
	take(&sleepers, STATE_ON, 0, "busy", NULL);
	sleepers_end(&sleepers);
	assert_int_equal(sleepers.active, 1);
	assert_int_equal(sleepers.unsettled, 0);
	expect_shown(&sleepers,
		     "No samples: no thread was active. 12 threads sleep, 2 of these are the "
		     "kernel's own; 1 is stopped or a zombie. Where the others sleep:\n"
		     "\n"
		     "THREADS  COMM*            SYSCALL          WHY\n"
		     "      3  db-*             read             server\n"
		     "      2  shell            read             pipe\n"
		     "      1  a                read             pipe\n"
		     "      1  b                read             pipe\n"
		     "      1  c                read             pipe\n"
		     "2 more threads in 2 groups. -a shows threads that sleep, too; -a -g "
		     "comm,why,waits_on: what each waits for.\n");
	sleepers_done(&sleepers);
	names_transient_clear();
}

/* A second look begins anew, and says that a third may find more. */
static void looked_at_again(void **state)
{
	struct sleepers sleepers = {0};

	sleepers_begin(&sleepers);
	take(&sleepers, STATE_SLEEP, 0, "one", "pipe");
	take(&sleepers, STATE_SLEEP, 0, "two", "");
	sleepers_end(&sleepers);
	assert_int_equal(sleepers.unsettled, 1);
	sleepers_begin(&sleepers);
	sleepers.filtered = true;
	take(&sleepers, STATE_SLEEP, 0, "two", "client");
	sleepers_end(&sleepers);
	assert_int_equal(sleepers.unsettled, 0);
	expect_shown(&sleepers,
		     "No samples: no selected thread was active. 1 of them sleeps. "
		     "Where they sleep:\n"
		     "\n"
		     "THREADS  COMM*            SYSCALL          WHY\n"
		     "      1  two              read             client\n"
		     "-a shows threads that sleep, too; -a -g comm,why,waits_on: what each waits "
		     "for.\n");
	sleepers_done(&sleepers);
	names_transient_clear();
}

static void nobody_there(void **state)
{
	struct sleepers sleepers = {0};

	sleepers_begin(&sleepers);
	sleepers_end(&sleepers);
	expect_shown(&sleepers, "No samples: no thread matches all conditions.\n");
	text_add_string(&sleepers.unmet, "there is no thread for -c x.");
	expect_shown(&sleepers, "No samples: there is no thread for -c x.\n");
	sleepers_begin(&sleepers);
	sleepers.filtered = true;
	take(&sleepers, STATE_STOPPED, 0, "held", NULL);
	sleepers_end(&sleepers);
	expect_shown(&sleepers, "No samples: no selected thread was active. 0 of them "
				"sleep; 1 is stopped or a zombie.\n");
	sleepers_done(&sleepers);
	names_transient_clear();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(largest_groups),
		cmocka_unit_test(looked_at_again),
		cmocka_unit_test(nobody_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
