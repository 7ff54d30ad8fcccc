/* SPDX-License-Identifier: GPL-2.0-or-later */
/* live/chains/live_wakers: edges to the threads that ended the last waits in a call that only
 * threads end. */
#include "live/chains/live_edges.h"
#include "live/chains/live_wakers.h"
#include "base/names.h"

#include "unit.h"

#define WAITER 100
#define WAKER 101
#define WAITS 12 /* waits that the same thread ended, enough for an edge */

/* Returns the edge after that many waits in the call, which had that time limit. */
static struct edge edge_of(const char *call, int limit_argument)
{
	struct live_wakers wakers = {0};
	struct thread_state record = {.sched.tid = WAITER};
	struct sample sample = {.thread.tid = WAITER, .thread.pid = WAITER, .waker.tid = WAKER};
	const struct edge_waiter requester = {.record = &record, .sample = &sample};
	struct edge edge = edge_absent;

	sample.call.name = name_of_string(call);
	sample.call.arg[0] = 0x7000;
	if (limit_argument)
		sample.call.arg[limit_argument] = 0x8000;
	for (uint64_t wait = 1; wait <= WAITS; wait++) {
		record.sched.sequence_done = wait;
		live_last_waker_edge(&wakers, &requester, &edge);
	}
	live_wakers_done(&wakers);
	return edge;
}

static void calls_that_threads_end(void **state)
{
	static const struct {
		const char *call;
		int limit;
	} rows[] = {
		{"futex", 3},	    {"futex_time64", 3}, {"futex_wait", 4},
		{"futex_waitv", 3}, {"semop", 0},	 {"semtimedop", 3},
		{"msgrcv", 0},	    {"msgsnd", 0},	 {"read", 0},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct edge edge = edge_of(rows[i].call, 0);

		if (edge.kind != EDGE_WAKER || edge.tid != WAKER || edge.sure != SURE_LIKELY)
			fail_msg("%s has no waker", rows[i].call);
		/* a thread interrupted when the time is over is not a waker */
		if (rows[i].limit && edge_of(rows[i].call, rows[i].limit).kind != EDGE_NONE)
			fail_msg("%s with a time limit has a waker", rows[i].call);
	}
	/* flags of futex_wait(2), not its time limit */
	assert_int_equal(edge_of("futex_wait", 3).kind, EDGE_WAKER);
}

static void calls_that_others_end(void **state)
{
	static const char *const calls[] = {"poll", "recvfrom", "io_getevents", "nanosleep",
					    "pause"};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (edge_of(calls[i], 0).kind != EDGE_NONE)
			fail_msg("%s has a waker", calls[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_that_threads_end),
		cmocka_unit_test(calls_that_others_end),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	names_clear();
	return failed;
}
