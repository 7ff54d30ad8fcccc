/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The stops that Go's runtime counts, found in memory with layouts of several versions. */
#include "apps/go_counters.h"
#include "unit.h"

#define PAUSES 256
#define END_NS 1700000000000000000ull
#define WORDS 2000

/* What the runtime has, at a place that differs from version to version. */
struct scene {
	uint64_t words[WORDS];
	size_t at;
	uint32_t number;
};

/* Adds a collection as gcMarkTermination() does. */
static void collection_add(struct scene *scene, uint64_t pause)
{
	uint64_t *stops = scene->words + scene->at;

	stops[0] = END_NS + scene->number * 1000000ull;
	stops[1] += pause;
	stops[2 + scene->number % PAUSES] = pause;
	stops[2 + PAUSES + scene->number % PAUSES] = stops[0];
	scene->number++;
	memcpy(&stops[2 + 2 * PAUSES], &scene->number, sizeof(scene->number));
}

static struct scene *scene_begin(size_t at, uint32_t collections)
{
	struct scene *scene = calloc(1, sizeof(*scene));

	assert_non_null(scene);
	for (size_t i = 0; i < WORDS; i++)
		if (i < at || i > at + 2 + 2 * PAUSES)
			/* sizes, times of the monotonic clock, and an earlier time of day */
			scene->words[i] = i % 3 ? i * 4096 : END_NS - i;
	scene->at = at;
	for (uint32_t i = 0; i < collections; i++)
		collection_add(scene, 20000 + i);
	return scene;
}

static bool found(const struct scene *scene, size_t words, size_t *at)
{
	return go_pauses_find(scene->words, words * sizeof(uint64_t), at);
}

static void test_found(void **state)
{
	static const uint32_t numbers[] = {1, 2, 255, 256, 257, 1000};

	for (size_t at = 1; at < 1000; at += 333)
		for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
			struct scene *scene = scene_begin(at, numbers[i]);
			size_t is = 0;

			assert_true(found(scene, WORDS, &is));
			assert_int_equal(is, at * sizeof(uint64_t));
			/* the count is cut off */
			assert_false(found(scene, at + 2 + 2 * PAUSES, &is));
			free(scene);
		}
}

/* No collection yet; one that is just being entered; and what only looks like them. */
static void test_not_found(void **state)
{
	struct scene *scene = scene_begin(100, 0);
	size_t at;

	assert_false(found(scene, WORDS, &at));
	for (int i = 0; i < 300; i++)
		collection_add(scene, 30000);
	assert_true(found(scene, WORDS, &at));
	scene->words[100] += 5; /* the last end is of the next one */
	assert_false(found(scene, WORDS, &at));
	scene->words[100] -= 5;
	scene->words[101] = 1000; /* less than the pauses add up to */
	assert_false(found(scene, WORDS, &at));
	free(scene);
	scene = scene_begin(100, 3);
	scene->words[101] += 1; /* all pauses are there, and make another sum */
	assert_false(found(scene, WORDS, &at));
	scene->words[101] -= 1;
	assert_true(found(scene, WORDS, &at));
	scene->words[102 + 9] = 7; /* a pause of a collection that has not been */
	assert_false(found(scene, WORDS, &at));
	free(scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found),
		cmocka_unit_test(test_not_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
