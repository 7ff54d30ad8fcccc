/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events that control groups count, in trees of both versions. */
#include "unit.h"
#include "fake_tree.h"
#include "base/clock.h"
#include "proc/cgroup_events.h"

static char text[512];

static void event_note(void *to, enum cgroup_event_kind kind, const char *path, int64_t count)
{
	snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s: %s of %s, %d;",
		 cgroup_event_name(kind), cgroup_event_limit(to, kind), path, (int)count);
}

/* Returns what a reading that is due finds. A walk takes 20 ms at most, whatever else runs on the
 * CPU: the first one is made until it is complete. */
static const char *events_of(struct cgroup_events *events)
{
	static int64_t now_ns = NS_PER_SECOND;

	*text = '\0';
	do {
		now_ns += 1000 * NS_PER_SECOND;
		cgroup_events_read(events, fake_tree, now_ns, event_note, events);
	} while (!events->begun);
	return text;
}

static void version_2(void **state)
{
	struct cgroup_events events = {.begun = false};

	fake_tree_mounts("2 1 0:2 / %s/g rw shared:1 - cgroup2 none rw\n");
	fake_tree_put("g/pod/memory.events", "low 0\nhigh 0\nmax 7\noom 3\noom_kill 3\n");
	fake_tree_put("g/pod/memory.events.local", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n");
	fake_tree_put("g/pod/a/memory.events", "low 0\nhigh 0\nmax 7\noom 3\noom_kill 3\n");
	fake_tree_put("g/pod/a/memory.events.local", "low 0\nhigh 0\nmax 7\noom 3\noom_kill 3\n");
	fake_tree_put("g/pod/a/pids.events", "max 5\n");
	fake_tree_put("g/old/memory.events", "low 0\nhigh 0\nmax 0\noom 0\n");
	assert_string_equal(events_of(&events), ""); /* it happened before */
	assert_string_equal(events_of(&events), "");
	fake_tree_put("g/pod/memory.events", "low 0\nhigh 0\nmax 9\noom 4\noom_kill 4\n");
	fake_tree_put("g/pod/a/memory.events.local", "low 0\nhigh 0\nmax 9\noom 4\noom_kill 4\n");
	assert_string_equal(events_of(&events), "out of memory: memory.max of /pod/a, 1;");
	fake_tree_put("g/pod/a/pids.events", "max 9\n");
	fake_tree_put("g/old/memory.events", "low 0\nhigh 0\nmax 0\noom 2\n");
	events_of(&events);
	assert_non_null(strstr(text, "fork refused: pids.max of /pod/a, 4;"));
	assert_non_null(strstr(text, "out of memory: memory.max of /old, 2;"));
	/* reclaim at a limit is no event */
	fake_tree_put("g/pod/a/memory.events.local", "low 0\nhigh 9\nmax 99\noom 4\noom_kill 4\n");
	assert_string_equal(events_of(&events), "");
	/* the group was made again; another is new */
	fake_tree_put("g/pod/a/pids.events", "max 1\n");
	fake_tree_put("g/new/pids.events", "max 2\n");
	events_of(&events);
	assert_non_null(strstr(text, "fork refused: pids.max of /pod/a, 1;"));
	assert_non_null(strstr(text, "fork refused: pids.max of /new, 2;"));
	cgroup_events_done(&events);
}

static void version_1(void **state)
{
	struct cgroup_events events = {.begun = false};

	fake_tree_mounts("2 1 0:2 / %s/m rw shared:1 - cgroup none rw,memory\n");
	fake_tree_put("m/web/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n");
	fake_tree_put("m/old/memory.oom_control", "oom_kill_disable 0\nunder_oom 1\n");
	assert_string_equal(events_of(&events), "");
	fake_tree_put("m/web/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
	assert_string_equal(events_of(&events), "out of memory: memory.limit_in_bytes of /web, 2;");
	/* not due yet */
	fake_tree_put("m/web/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n");
	*text = '\0';
	cgroup_events_read(&events, fake_tree, events.next_ns - 1, event_note, &events);
	assert_string_equal(text, "");
	cgroup_events_done(&events);
}

static void without(void **state)
{
	struct cgroup_events events = {.begun = false};

	fake_tree_mounts("");
	assert_string_equal(events_of(&events), "");
	cgroup_events_done(&events);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(version_2, fake_tree_begin, fake_tree_end),
		cmocka_unit_test_setup_teardown(version_1, fake_tree_begin, fake_tree_end),
		cmocka_unit_test_setup_teardown(without, fake_tree_begin, fake_tree_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
