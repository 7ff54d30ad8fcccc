/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The walk that finds from samples and wake-ups what a process waited for. Scans are at 10, 20, 30
 * ms and so on; threads are 1 (the process's own), 2, 3. */
#include "unit.h"
#include "base/clock.h"
#include "base/names.h"
#include "report/critical_path.h"

#define OWN 1
#define TOLD_MAX 64

struct reported {
	struct sample samples[TOLD_MAX];
	size_t count;
};

static void take(void *to, const struct sample *sample)
{
	struct reported *reported = to;

	assert_true(reported->count < TOLD_MAX);
	reported->samples[reported->count++] = *sample;
}

static int64_t scan_time_ns(int scan)
{
	return scan * 10 * NS_PER_MS;
}

/* Adds a sample. since_ms: for sleeps, when the thread left its CPU. */
static void seen(struct critical_path *path, int scan, int64_t tid, enum thread_state_kind state,
		 int64_t since_ms, const char *why)
{
	const struct scan at = {
		.time_us = scan * 10000, .weight_us = 10000, .scan_time_ns = scan_time_ns(scan)};
	struct sample sample = *sample_absent();
	char comm[8];

	snprintf(comm, sizeof(comm), "t%d", (int)tid);
	sample.thread.tid = tid;
	sample.thread.pid = tid * 100;
	sample.thread.comm = name_transient_string(comm);
	sample.now.state = state;
	sample.now.state_us = (scan_time_ns(scan) - since_ms * NS_PER_MS) / NS_PER_US;
	sample.wait.why = why;
	sample.call.name = name_transient_string(state == STATE_ON ? NULL : "read");
	path_notes_add(&path->notes, &at, &sample, tid == OWN);
}

static void woken(struct critical_path *path, int64_t tid, int64_t waker_tid, int64_t slept_ms,
		  int64_t wake_ms, bool interrupt)
{
	path_notes_wakeup(&path->notes, &(struct wakeup){.tid = tid,
							 .waker_tid = waker_tid,
							 .slept_ns = slept_ms * NS_PER_MS,
							 .wake_ns = wake_ms * NS_PER_MS,
							 .interrupt = interrupt});
}

static void expect(const struct reported *reported, size_t at, const char *end, const char *path)
{
	assert_true(at < reported->count);
	assert_string_equal(reported->samples[at].path.end, end);
	assert_string_equal(reported->samples[at].path.text, path);
	assert_string_equal(reported->samples[at].path.of, "t1");
	assert_int_equal(reported->samples[at].path.of_tid, 1);
	assert_int_equal(reported->samples[at].scan.weight_us, 10000);
}

/* A path ends with a thread that runs or is runnable: reported at once. */
static void awake(void **state)
{
	struct critical_path path = {0};
	struct reported reported = {.count = 0};

	seen(&path, 1, OWN, STATE_ON, 5, NULL);
	seen(&path, 1, 2, STATE_ON, 5, NULL);
	critical_path_end_scan(&path, scan_time_ns(1), take, &reported);
	seen(&path, 2, OWN, STATE_RQ, 15, NULL);
	critical_path_end_scan(&path, scan_time_ns(2), take, &reported);
	assert_int_equal(reported.count, 2);
	expect(&reported, 0, "CPU", "t1");
	expect(&reported, 1, "run queue", "t1");
	critical_path_done(&path);
}

/* One sleep over three scans: the waker was asleep until a timer woke it, then it ran. Nothing is
 * reported before the sleep has ended. */
static void through_another(void **state)
{
	struct critical_path path = {0};
	struct reported reported = {.count = 0};

	for (int scan = 1; scan <= 3; scan++) {
		seen(&path, scan, OWN, STATE_SLEEP, 5, "client");
		seen(&path, scan, 2, scan == 3 ? STATE_ON : STATE_SLEEP, 6, "sleep");
		if (scan == 3)
			woken(&path, 2, ABSENT, 6, 25, true);
		critical_path_end_scan(&path, scan_time_ns(scan), take, &reported);
		assert_int_equal(reported.count, 0);
	}
	woken(&path, OWN, 2, 5, 35, false);
	seen(&path, 4, OWN, STATE_ON, 35, NULL);
	critical_path_end_scan(&path, scan_time_ns(4), take, &reported);
	assert_int_equal(reported.count, 4);
	expect(&reported, 0, "timer", "t1 read> t2");
	expect(&reported, 1, "timer", "t1 read> t2");
	expect(&reported, 2, "CPU", "t1 read> t2");
	expect(&reported, 3, "CPU", "t1");
	assert_int_equal(reported.samples[0].thread.tid, 2);
	assert_int_equal(reported.samples[0].path.depth, 1);
	assert_int_equal(reported.samples[0].scan.time_us, 10000);
	assert_int_equal(reported.samples[0].now.state_us, 4000);
	assert_int_equal(reported.samples[1].now.state_us, 14000);
	critical_path_done(&path);
}

/* A wake-up later than the time until which all are known is not used yet. */
static void not_before_all_is_known(void **state)
{
	struct critical_path path = {0};
	struct reported reported = {.count = 0};

	seen(&path, 1, OWN, STATE_SLEEP, 5, NULL);
	seen(&path, 1, 2, STATE_SLEEP, 5, NULL);
	woken(&path, OWN, 2, 5, 14, false);
	critical_path_end_scan(&path, 13 * NS_PER_MS, take, &reported);
	assert_int_equal(reported.count, 0);
	woken(&path, 2, 3, 5, 13, false);
	seen(&path, 2, OWN, STATE_ON, 14, NULL);
	critical_path_end_scan(&path, 23 * NS_PER_MS, take, &reported);
	assert_int_equal(reported.count, 2);
	expect(&reported, 0, "not seen", "t1 read> t2"); /* 3 has no sample */
	critical_path_done(&path);
}

/* Two sleeps of a tid, which may be another thread's by then, are kept apart. */
static void two_sleeps(void **state)
{
	struct critical_path path = {0};
	struct reported reported = {.count = 0};

	seen(&path, 1, OWN, STATE_SLEEP, 5, NULL);
	seen(&path, 1, 2, STATE_ON, 0, NULL);
	seen(&path, 1, 3, STATE_ON, 0, NULL);
	seen(&path, 2, OWN, STATE_SLEEP, 15, NULL);
	seen(&path, 2, 2, STATE_ON, 0, NULL);
	seen(&path, 2, 3, STATE_ON, 0, NULL);
	woken(&path, OWN, 3, 15, 25, false); /* rings are read one after another */
	woken(&path, OWN, 2, 5, 12, false);
	critical_path_end_scan(&path, scan_time_ns(3), take, &reported);
	assert_int_equal(reported.count, 2);
	expect(&reported, 0, "CPU", "t1 read> t2");
	expect(&reported, 1, "CPU", "t1 read> t3");
	critical_path_done(&path);
}

/* Waits that were not ended by a thread. */
static void ends(void **state)
{
	static const struct {
		enum thread_state_kind kind;
		const char *why, *end;
	} rows[] = {
		{STATE_DISK, NULL, "disk"},	    {STATE_SLEEP, "sleep", "timer"},
		{STATE_SLEEP, "futex", "timer"},    {STATE_SLEEP, "client", "network"},
		{STATE_SLEEP, "poll", "interrupt"}, {STATE_SLEEP, NULL, "interrupt"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct critical_path path = {0};
		struct reported reported = {.count = 0};

		seen(&path, 1, OWN, rows[i].kind, 5, rows[i].why);
		seen(&path, 1, 2, STATE_ON, 5, NULL);
		woken(&path, OWN, 2, 5, 15, true); /* the waker was only interrupted */
		critical_path_end_scan(&path, scan_time_ns(2), take, &reported);
		assert_int_equal(reported.count, 1);
		expect(&reported, 0, rows[i].end, "t1");
		critical_path_done(&path);
	}
}

/* The reason of a sleep may be found for a later sample of it; the source is given the threads
 * whose waits are to be looked up. */
static void found_out_later(void **state)
{
	struct critical_path path = {0};
	struct reported reported = {.count = 0};

	seen(&path, 1, OWN, STATE_SLEEP, 5, NULL);
	seen(&path, 2, OWN, STATE_SLEEP, 5, "sleep");
	woken(&path, OWN, ABSENT, 5, 25, true);
	critical_path_end_scan(&path, scan_time_ns(3), take, &reported);
	assert_int_equal(reported.count, 2);
	expect(&reported, 0, "timer", "t1");
	expect(&reported, 1, "timer", "t1");
	assert_int_equal(reported.samples[0].now.state_us, 5000);
	assert_int_equal(path.led_to_count, 2);
	assert_int_equal(path.led_to[0], OWN);
	critical_path_done(&path);
}

/* Sender of a packet on this host: it is delivered in an interrupt while the other process sends
 * it. */
static void sent_on_this_host(void **state)
{
	struct critical_path path = {0};
	struct reported reported = {.count = 0};
	const struct scan scan = {
		.time_us = 10000, .weight_us = 10000, .scan_time_ns = scan_time_ns(1)};
	struct sample sample = *sample_absent();

	sample.thread.tid = sample.thread.pid = OWN;
	sample.thread.comm = name_transient_string("t1");
	sample.now.state = STATE_SLEEP;
	sample.now.state_us = 5000;
	sample.call.name = name_transient_string("recvfrom");
	sample.wait.pid = 200;
	path_notes_add(&path.notes, &scan, &sample, true);
	seen(&path, 1, 2, STATE_ON, 5, NULL);
	woken(&path, OWN, 2, 5, 15, true);
	critical_path_end_scan(&path, scan_time_ns(2), take, &reported);
	expect(&reported, 0, "CPU", "t1 recvfrom> t2");
	critical_path_done(&path);
}

/* Adds a sleep of thread t1 in a call on a descriptor; pid: process at the other end, or ABSENT. */
static void waited_on(struct critical_path *path, int scan, int64_t fd, int64_t pid)
{
	const struct scan at = {
		.time_us = scan * 10000, .weight_us = 10000, .scan_time_ns = scan_time_ns(scan)};
	struct sample sample = *sample_absent();

	sample.thread.tid = sample.thread.pid = OWN;
	sample.thread.comm = name_transient_string("t1");
	sample.now.state = STATE_SLEEP;
	sample.now.state_us = 5000;
	sample.wait.why = "client";
	sample.call.name = name_transient_string("read");
	sample.call.nr = 0;
	sample.call.arg[0] = fd;
	sample.wait.pid = pid;
	path_notes_add(&path->notes, &at, &sample, true);
	seen(path, scan, 2, STATE_ON, scan * 10 - 5, NULL);
	woken(path, OWN, 2, scan * 10 - 5, scan * 10 + 4, true);
}

/* Sender for short waits: the other end was looked up for one wait, and the next ones were too
 * short. It is known for the same call on the same descriptor, also for scans before, and not for
 * another descriptor. */
static void sent_to_short_waits(void **state)
{
	struct critical_path path = {0};
	struct reported reported = {.count = 0};

	waited_on(&path, 1, 3, ABSENT);
	critical_path_end_scan(&path, scan_time_ns(2), take, &reported);
	waited_on(&path, 2, 3, 200);
	critical_path_end_scan(&path, scan_time_ns(3), take, &reported);
	waited_on(&path, 3, 3, ABSENT);
	critical_path_end_scan(&path, scan_time_ns(4), take, &reported);
	waited_on(&path, 4, 4, ABSENT);
	critical_path_end_scan(&path, scan_time_ns(5), take, &reported);
	waited_on(&path, 5, 3, 300); /* known at present, and not the thread that was interrupted */
	critical_path_end_scan(&path, scan_time_ns(6), take, &reported);
	assert_int_equal(reported.count, 3);
	expect(&reported, 0, "CPU", "t1 read> t2");
	expect(&reported, 1, "CPU", "t1 read> t2");
	expect(&reported, 2, "network", "t1");
	critical_path_settle(&path, take, &reported);
	assert_int_equal(reported.count, 5);
	expect(&reported, 3, "CPU", "t1 read> t2"); /* path of the first scan */
	expect(&reported, 4, "network", "t1");
	critical_path_done(&path);
}

/* Wake-ups by the thread itself, one that was lost, and one that is still to come. */
static void unknown(void **state)
{
	struct critical_path path = {0};
	struct reported reported = {.count = 0};

	seen(&path, 1, OWN, STATE_SLEEP, 5, NULL);
	woken(&path, OWN, OWN, 5, 15, false);
	critical_path_end_scan(&path, scan_time_ns(1), take, &reported);
	for (int scan = 2; scan <= 6; scan++) {
		if (scan == 2)
			seen(&path, scan, OWN, STATE_SLEEP, 16, NULL);
		seen(&path, scan, 2, STATE_SLEEP, 1, NULL);
		critical_path_end_scan(&path, scan_time_ns(scan), take, &reported);
	}
	seen(&path, 7, OWN, STATE_SLEEP, 65, NULL);
	critical_path_end_scan(&path, scan_time_ns(7), take, &reported);
	assert_int_equal(reported.count, 2);
	expect(&reported, 0, "self", "t1");
	expect(&reported, 1, "not seen", "t1");
	critical_path_settle(&path, take, &reported);
	assert_int_equal(reported.count, 3);
	expect(&reported, 2, "not ended", "t1");
	assert_int_equal(path.notes.scan_count, 0);
	critical_path_done(&path);
}

/* Wake-ups that contradict each other make no path that goes on for ever. */
static void circles(void **state)
{
	struct critical_path path = {0};
	struct reported reported = {.count = 0};

	seen(&path, 1, OWN, STATE_SLEEP, 5, NULL);
	seen(&path, 1, 2, STATE_SLEEP, 5, NULL);
	woken(&path, OWN, 2, 5, 15, false);
	woken(&path, 2, OWN, 5, 15, false);
	critical_path_end_scan(&path, scan_time_ns(2), take, &reported);
	assert_int_equal(reported.count, 1);
	assert_string_equal(reported.samples[0].path.end, "not seen");
	assert_int_equal(reported.samples[0].path.depth, PATH_LINKS_MAX - 1);
	assert_non_null(strstr(reported.samples[0].path.text, "..."));
	critical_path_done(&path);
}

/* Rows are reported in the order of time, when all is known. */
static void in_order(void **state)
{
	struct critical_path path = {.ordered = true};
	struct reported reported = {.count = 0};

	seen(&path, 1, OWN, STATE_SLEEP, 5, NULL);
	seen(&path, 1, 2, STATE_ON, 5, NULL);
	critical_path_end_scan(&path, scan_time_ns(1), take, &reported);
	seen(&path, 2, OWN, STATE_SLEEP, 5, NULL);
	seen(&path, 2, 2, STATE_ON, 5, NULL);
	critical_path_end_scan(&path, scan_time_ns(2), take, &reported);
	seen(&path, 3, OWN, STATE_ON, 25, NULL);
	critical_path_end_scan(&path, scan_time_ns(3), take, &reported);
	woken(&path, OWN, 2, 5, 25, false);
	critical_path_end_scan(&path, scan_time_ns(4), take, &reported);
	assert_int_equal(reported.count, 0);
	critical_path_settle(&path, take, &reported);
	assert_int_equal(reported.count, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(reported.samples[i].scan.time_us, (i + 1) * 10000);
	critical_path_done(&path);
}

struct told_in_order {
	int count, not_ended;
};

static void take_in_order(void *to, const struct sample *sample)
{
	struct told_in_order *reported = to;

	reported->not_ended += !strcmp(sample->path.end, "not ended");
	assert_int_equal(sample->scan.time_us, ++reported->count * 10000);
	if (sample->path.depth == 0 && sample->now.state == STATE_SLEEP) /* time asleep so far */
		assert_int_equal(sample->now.state_us, reported->count * 10000 - 5000);
}

/* Scans beyond the capacity: the oldest ones are reported, and the wait goes on in the others. */
static void longer_than_scans_are_held(void **state)
{
	struct critical_path path = {.ordered = true};
	struct told_in_order reported = {.count = 0};
	const int scans = PATH_SCANS_MAX + PATH_SCANS_MAX / 8;

	for (int scan = 1; scan <= scans; scan++) {
		seen(&path, scan, OWN, STATE_SLEEP, 5, NULL);
		seen(&path, scan, 2, scan % 2 ? STATE_ON : STATE_RQ, 10 * scan - 1, NULL);
		critical_path_end_scan(&path, scan_time_ns(scan), take_in_order, &reported);
	}
	assert_int_equal(reported.count, PATH_SCANS_MAX / 4);
	assert_int_equal(reported.not_ended, PATH_SCANS_MAX / 4);
	seen(&path, scans + 1, OWN, STATE_ON, 10 * scans + 5, NULL);
	woken(&path, OWN, 2, 5, 10 * scans + 5, false);
	critical_path_end_scan(&path, scan_time_ns(scans + 1), take_in_order, &reported);
	critical_path_settle(&path, take_in_order, &reported);
	assert_int_equal(reported.not_ended, PATH_SCANS_MAX / 4);
	assert_int_equal(reported.count, scans + 1);
	critical_path_done(&path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(awake),
		cmocka_unit_test(through_another),
		cmocka_unit_test(not_before_all_is_known),
		cmocka_unit_test(two_sleeps),
		cmocka_unit_test(ends),
		cmocka_unit_test(found_out_later),
		cmocka_unit_test(sent_on_this_host),
		cmocka_unit_test(sent_to_short_waits),
		cmocka_unit_test(unknown),
		cmocka_unit_test(circles),
		cmocka_unit_test(in_order),
		cmocka_unit_test(longer_than_scans_are_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
