/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What is known of a wait that goes on while it is asked anew. */
#include "unit.h"

#include "waits/wait_episode.h"

#define ENDS_NS (2 * WAIT_STILL_NS) /* facts of an episode are stale by then */

static struct sample sleeper(void)
{
	struct sample sample = *sample_absent();

	sample.tid = 8;
	sample.state = DOING_SLEEP;
	sample.start_ns = 1;
	sample.syscall_nr = 0;
	return sample;
}

/* As waits_fill() leaves it: other: the process that has the other end. */
static void found(struct wait_episode *episode, bool pending, int64_t other)
{
	episode->known |= NEED_WAITS;
	episode->pending = pending;
	episode->facts.kind = WAIT_SOCKET;
	episode->facts.pid = other;
}

static int64_t told(struct wait_episode *episode, bool *whole)
{
	return wait_episode_facts(episode, whole)->pid;
}

static void before_serves(void **state)
{
	const struct lookup_hint hint = {.sequence = 4}, woken = {.sequence = 6};
	const struct sample sample = sleeper();
	int64_t now_ns = NS_PER_SECOND;
	struct cache episodes;
	bool whole;

	(void)state;
	wait_episodes_init(&episodes);
	found(wait_episode_find(&episodes, &sample, &hint, now_ns), true, ABSENT);
	assert_int_equal(told(wait_episode_find(&episodes, &sample, &hint, now_ns), &whole),
			 ABSENT);
	assert_false(whole);
	now_ns += WAIT_STILL_NS / 20;
	found(wait_episode_find(&episodes, &sample, &hint, now_ns), false, 20);
	assert_int_equal(told(wait_episode_find(&episodes, &sample, &hint, now_ns), &whole), 20);
	assert_true(whole);

	/* looked for anew, for several scans */
	for (int i = 0; i < 3; i++) {
		now_ns += i ? WAIT_STILL_NS / 20 : ENDS_NS;
		found(wait_episode_find(&episodes, &sample, &hint, now_ns), true, ABSENT);
		assert_int_equal(told(wait_episode_find(&episodes, &sample, &hint, now_ns), &whole),
				 20);
		assert_true(whole);
	}
	/* the other end was closed meanwhile */
	now_ns += WAIT_STILL_NS / 20;
	found(wait_episode_find(&episodes, &sample, &hint, now_ns), false, ABSENT);
	assert_int_equal(told(wait_episode_find(&episodes, &sample, &hint, now_ns), &whole),
			 ABSENT);
	/* another wait */
	found(wait_episode_find(&episodes, &sample, &hint, now_ns), false, 20);
	found(wait_episode_find(&episodes, &sample, &woken, now_ns), true, ABSENT);
	assert_int_equal(told(wait_episode_find(&episodes, &sample, &woken, now_ns), &whole),
			 ABSENT);
	assert_false(whole);
	/* it is not found again for long */
	found(wait_episode_find(&episodes, &sample, &hint, now_ns), false, 20);
	now_ns += 6 * NS_PER_SECOND;
	found(wait_episode_find(&episodes, &sample, &hint, now_ns), true, ABSENT);
	told(wait_episode_find(&episodes, &sample, &hint, now_ns), &whole);
	assert_false(whole);
	cache_done(&episodes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(before_serves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
