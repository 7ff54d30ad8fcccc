/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The bounded set that lookups use as their caches. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/cache.h"

struct item {
	struct cache_entry entry;
	int64_t value;
};

static const struct cache empty = {.entry_bytes = sizeof(struct item), .entries_max = 1000};

static struct item *get(struct cache *cache, uint64_t key, int64_t now_ns, bool expect_added)
{
	bool added;
	struct item *item = cache_get(cache, key, now_ns, &added);

	assert_int_equal(added, expect_added);
	return item;
}

static void keeps(void **state)
{
	struct cache cache = empty;

	for (uint64_t key = 0; key < 500; key++)
		get(&cache, key, 1, true)->value = key + 7;
	for (uint64_t key = 0; key < 500; key++)
		assert_int_equal(get(&cache, key, 1, false)->value, key + 7);
	cache_done(&cache);
	assert_int_equal(cache.count, 0);
	get(&cache, 3, 1, true);
	cache_done(&cache);
}

static void bounded(void **state)
{
	struct cache cache = empty;

	for (uint64_t key = 0; key < 1500; key++)
		get(&cache, key, 1, true)->value = key + 7;
	assert_int_equal(cache.count, 1000);
	/* cached entries remain, others get a zeroed entry each time */
	assert_int_equal(get(&cache, 999, 1, false)->value, 999 + 7);
	assert_int_equal(get(&cache, 1499, 1, true)->value, 0);
	assert_int_equal(get(&cache, 1499, 1, true)->value, 0);
	cache_done(&cache);
}

static void sweeps(void **state)
{
	struct cache cache = empty;

	for (uint64_t key = 0; key < 1000; key++)
		get(&cache, key, 1, true)->value = key + 7;
	for (uint64_t key = 0; key < 1000; key += 3)
		get(&cache, key, 100, false);
	cache_sweep(&cache, 120, 50);
	assert_int_equal(cache.count, 334);
	for (uint64_t key = 0; key < 1000; key++)
		assert_int_equal(get(&cache, key, 120, key % 3 != 0)->value, key % 3 ? 0 : key + 7);
	cache_sweep(&cache, 1000, 50);
	assert_int_equal(cache.count, 0);
	cache_sweep(&cache, 1000, 50);
	cache_done(&cache);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps),
		cmocka_unit_test(bounded),
		cmocka_unit_test(sweeps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
