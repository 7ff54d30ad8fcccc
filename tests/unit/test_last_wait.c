/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Facts of a wait that goes on while they are looked up again. */
#include "unit.h"

#include "waits/last_wait.h"

#define ENDS_NS (2 * WAIT_STILL_NS) /* facts of a wait are stale by then */

static struct sample sleeper(void)
{
	struct sample sample = *sample_absent();

	sample.thread.tid = 8;
	sample.now.state = STATE_SLEEP;
	sample.thread.start_ns = 1;
	sample.call.nr = 0;
	return sample;
}

/* Fills in facts as waits_fill() does. other: process at the other end. */
static void found(struct last_wait *last, bool pending, int64_t other)
{
	last->known |= NEED_WAITS;
	last->pending = pending;
	last->facts.kind = WAIT_SOCKET;
	last->facts.pid = other;
}

static int64_t reported(struct last_wait *last, bool *whole)
{
	return last_wait_facts(last, whole)->pid;
}

static void before_serves(void **state)
{
	const struct lookup_hint hint = {.sequence = 4}, woken = {.sequence = 6};
	const struct sample sample = sleeper();
	int64_t now_ns = NS_PER_SECOND;
	struct cache last_waits;
	bool whole;

	last_waits_init(&last_waits);
	found(last_wait_find(&last_waits, &sample, &hint, now_ns), true, ABSENT);
	assert_int_equal(reported(last_wait_find(&last_waits, &sample, &hint, now_ns), &whole),
			 ABSENT);
	assert_false(whole);
	now_ns += WAIT_STILL_NS / 20;
	found(last_wait_find(&last_waits, &sample, &hint, now_ns), false, 20);
	assert_int_equal(reported(last_wait_find(&last_waits, &sample, &hint, now_ns), &whole), 20);
	assert_true(whole);

	/* search that takes several scans */
	for (int i = 0; i < 3; i++) {
		now_ns += i ? WAIT_STILL_NS / 20 : ENDS_NS;
		found(last_wait_find(&last_waits, &sample, &hint, now_ns), true, ABSENT);
		assert_int_equal(
			reported(last_wait_find(&last_waits, &sample, &hint, now_ns), &whole), 20);
		assert_true(whole);
	}
	/* the other end was closed meanwhile */
	now_ns += WAIT_STILL_NS / 20;
	found(last_wait_find(&last_waits, &sample, &hint, now_ns), false, ABSENT);
	assert_int_equal(reported(last_wait_find(&last_waits, &sample, &hint, now_ns), &whole),
			 ABSENT);
	/* another wait */
	found(last_wait_find(&last_waits, &sample, &hint, now_ns), false, 20);
	found(last_wait_find(&last_waits, &sample, &woken, now_ns), true, ABSENT);
	assert_int_equal(reported(last_wait_find(&last_waits, &sample, &woken, now_ns), &whole),
			 ABSENT);
	assert_false(whole);
	/* no other end is found again for long */
	found(last_wait_find(&last_waits, &sample, &hint, now_ns), false, 20);
	now_ns += WAIT_LONGEST_NS + 4 * NS_PER_SECOND;
	found(last_wait_find(&last_waits, &sample, &hint, now_ns), true, ABSENT);
	reported(last_wait_find(&last_waits, &sample, &hint, now_ns), &whole);
	assert_false(whole);
	cache_done(&last_waits);
}

/* A connection that remains with a process is read again ever later, until it is another
 * process'. */
static void same_end_is_read_less(void **state)
{
	const struct lookup_hint hint = {.sequence = 4}, woken = {.sequence = 6};
	struct sample sample = sleeper();
	static const struct {
		int64_t other;
		unsigned int times; /* time that the result serves, in multiples of the first */
	} reads[] = {{20, 1}, {20, 2}, {20, 4}, {20, 4}, {21, 1}, {21, 2}};
	struct last_wait *last;
	int64_t now_ns = NS_PER_SECOND, once_ns;
	struct cache last_waits;
	bool whole;

	last_waits_init(&last_waits);
	for (size_t i = 0; i < sizeof(reads) / sizeof(reads[0]); i++) {
		last = last_wait_find(&last_waits, &sample, &hint, now_ns);
		assert_int_equal(last->known, 0);
		/* the known facts serve while they are looked up again */
		found(last, true, ABSENT);
		assert_int_equal(reported(last, &whole), i ? reads[i - 1].other : ABSENT);
		now_ns += WAIT_STILL_NS / 20;
		last = last_wait_find(&last_waits, &sample, &hint, now_ns);
		found(last, false, reads[i].other);
		once_ns = wait_still_until(sample.thread.tid, now_ns) - now_ns;
		assert_in_range(once_ns, WAIT_STILL_NS, 2 * WAIT_STILL_NS);
		assert_int_equal(last_wait_until(last) - now_ns, once_ns * reads[i].times);
		now_ns = last_wait_until(last) - 1;
		assert_ptr_equal(last_wait_find(&last_waits, &sample, &hint, now_ns), last);
		assert_int_equal(last->known, NEED_WAITS);
		now_ns++;
	}
	/* the thread's next wait for the connection begins with what is known of it */
	last = last_wait_find(&last_waits, &sample, &woken, now_ns);
	assert_int_equal(last->known, 0);
	assert_int_equal(reported(last, &whole), ABSENT);
	found(last, false, 21);
	assert_int_equal(last_wait_until(last) - now_ns,
			 (wait_still_until(sample.thread.tid, now_ns) - now_ns) * 4);
	/* but not the one for another */
	sample.file.name = "socket:[77]";
	last = last_wait_find(&last_waits, &sample, &hint, now_ns);
	found(last, false, 21);
	assert_int_equal(last_wait_until(last), wait_still_until(sample.thread.tid, now_ns));
	cache_done(&last_waits);
}

/* Threads that wait for one lock are read again together, and in few scans of a second; others each
 * at its own time. */
static void turns(void **state)
{
	enum { WAITERS = 100 };
	const struct lookup_hint hint = {.sequence = 4};
	struct sample sample = sleeper();
	struct cache last_waits;
	int64_t times[2][WAITERS], count[2] = {0};

	last_waits_init(&last_waits);
	for (int locks = 0; locks < 2; locks++)
		for (int i = 0; i < WAITERS; i++) {
			int64_t until_ns, now_ns = NS_PER_SECOND + i;
			struct last_wait *last;
			int64_t at = 0;

			sample.thread.tid = 1000 * (locks + 1) + i;
			last = last_wait_find(&last_waits, &sample, &hint, now_ns);
			last->facts.kind = locks ? WAIT_LOCK : WAIT_EVENT;
			until_ns = last_wait_until(last);
			assert_in_range(until_ns - now_ns, WAIT_STILL_NS, 2 * WAIT_STILL_NS);
			while (at < count[locks] && times[locks][at] != until_ns)
				at++;
			times[locks][at] = until_ns;
			count[locks] += at == count[locks];
		}
	assert_int_equal(count[0], WAITERS);
	assert_in_range(count[1], 2, 4);
	cache_done(&last_waits);
}

/* Once a wait was found to be in its call, the next one of the thread in the same call is assumed
 * to be, until the next scan and for a second in all; not one of a thread that was stopped. */
static void like_waits_are_assumed(void **state)
{
	struct lookup_hint hint = {.sequence = 4};
	struct sample sample = sleeper();
	struct last_wait *last;
	int64_t now_ns = NS_PER_SECOND;
	struct cache last_waits;

	last_waits_init(&last_waits);
	last = last_wait_find(&last_waits, &sample, &hint, now_ns);
	assert_false(last->assumed);
	last->in_call = true;
	last->in_call_ns = now_ns;
	hint.sequence = 6;
	now_ns += WAIT_STILL_NS / 2;
	assert_true(last_wait_find(&last_waits, &sample, &hint, now_ns)->assumed);
	last = last_wait_find(&last_waits, &sample, &hint, now_ns + 1);
	assert_false(last->assumed || last->in_call);
	hint.sequence = 8;
	sample.now.state = STATE_STOPPED;
	assert_false(last_wait_find(&last_waits, &sample, &hint, now_ns + 2)->assumed);
	hint.sequence = 10;
	sample.now.state = STATE_SLEEP;
	now_ns += WAIT_STILL_NS / 2;
	assert_false(last_wait_find(&last_waits, &sample, &hint, now_ns)->assumed);
	cache_done(&last_waits);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(before_serves),
		cmocka_unit_test(like_waits_are_assumed),
		cmocka_unit_test(same_end_is_read_less),
		cmocka_unit_test(turns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
