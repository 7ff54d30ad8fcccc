/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Holders that are known without a search: a process that looks for the other end of a socket has
 * one end. */
#include "unit.h"
#include "fake_proc.h"
#include "base/clock.h"
#include "waits/holders.h"

#define SCAN_NS (50 * NS_PER_MS)
#define FAR 5000 /* pid far from all other processes, which only the whole walk reaches */

struct scene {
	struct fake_proc proc;
	struct holders holders;
	int64_t now_ns;
};

static int scene_init(void **state)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	fake_proc_init(&scene->proc);
	holders_init(&scene->holders, scene->proc.root);
	scene->now_ns = NS_PER_SECOND;
	*state = scene;
	return 0;
}

static int scene_done(void **state)
{
	struct scene *scene = *state;

	holders_done(&scene->holders);
	fake_proc_done(&scene->proc);
	free(scene);
	return 0;
}

/* Returns the holder that scans find in the end. *scans: number of scans needed. */
static int64_t holder_of(struct scene *scene, const char *link, int64_t requester, int *scans)
{
	int64_t pid = 0;
	bool pending = true;

	for (*scans = 0; pending && *scans < 100; ++*scans) {
		pending = false;
		pid = holders_find(&scene->holders, link, HOLDER_ANY, requester, scene->now_ns,
				   NULL, &pending);
		scene->now_ns += SCAN_NS;
	}
	assert_false(pending);
	return pid;
}

static void noted(void **state)
{
	struct scene *scene = *state;
	int scans;

	/* /proc has none of it, so that a search would not find it */
	holders_note(&scene->holders, "socket:[11]", FAR, 3, scene->now_ns);
	assert_int_equal(holder_of(scene, "socket:[11]", 7, &scans), FAR);
	assert_int_equal(scans, 1);
	/* the noted process is checked again */
	scene->now_ns += NS_PER_SECOND;
	assert_int_equal(holder_of(scene, "socket:[11]", 7, &scans), 0);
	holders_note(&scene->holders, "socket:[11]", FAR, 3, scene->now_ns);
	assert_int_equal(holder_of(scene, "socket:[11]", 7, &scans), FAR);
	assert_int_equal(scene->holders.pending, 0);
}

static void noted_while_searched(void **state)
{
	struct scene *scene = *state;
	bool pending = false;
	int scans;

	scene->holders.scan_ns = scene->now_ns; /* scan without time left */
	holders_find(&scene->holders, "socket:[11]", HOLDER_ANY, 7, scene->now_ns, NULL, &pending);
	assert_true(pending);
	assert_int_equal(scene->holders.pending, 1);
	holders_note(&scene->holders, "socket:[11]", 7, 3, scene->now_ns);
	assert_int_equal(scene->holders.pending, 1); /* the requester is not the other end */
	holders_note(&scene->holders, "socket:[11]", FAR, 3, scene->now_ns);
	assert_int_equal(scene->holders.pending, 0);
	assert_int_equal(holder_of(scene, "socket:[11]", 7, &scans), FAR);
}

/* A process that has both ends is the other end only if no other process has it. */
static void noted_of_the_asking_one(void **state)
{
	struct scene *scene = *state;
	int scans;

	fake_proc_put_process(&scene->proc, 7, "fd/3", "socket:[11]");
	holders_note(&scene->holders, "socket:[11]", 7, 3, scene->now_ns);
	assert_int_equal(holder_of(scene, "socket:[11]", 7, &scans), 7);
	fake_proc_put_process(&scene->proc, 7, "fd/4", "socket:[12]");
	fake_proc_put_process(&scene->proc, FAR, "fd/5", "socket:[12]");
	holders_note(&scene->holders, "socket:[12]", 7, 4, scene->now_ns);
	assert_int_equal(holder_of(scene, "socket:[12]", 7, &scans), FAR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(noted, scene_init, scene_done),
		cmocka_unit_test_setup_teardown(noted_while_searched, scene_init, scene_done),
		cmocka_unit_test_setup_teardown(noted_of_the_asking_one, scene_init, scene_done),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
