/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pages that come back into the page cache: of hosts, and of control groups of both versions. */
#include "unit.h"
#include "fake_tree.h"
#include "base/clock.h"
#include "proc/refaults.h"
#include "sample/sample.h"
#include "sample/source.h"

#include <unistd.h>

static void hosts(void **state)
{
	int64_t page = sysconf(_SC_PAGESIZE);
	struct refaults refaults;

	refaults_parse("nr_free_pages 9\nworkingset_refault_anon 5\nworkingset_refault_file 7\n"
		       "pgpgin 300\npgpgout 4\n",
		       &refaults);
	assert_int_equal(refaults.read, 300 * 1024);
	assert_int_equal(refaults.refaulted, 7 * page);
	/* before 5.9 */
	refaults_parse("pgsteal_kswapd 2\npgsteal_direct 3\npgsteal_file 9\n", &refaults);
	assert_int_equal(refaults.evicted, 9 * page);
	refaults_parse("pgsteal_kswapd 2\npgsteal_direct 3\n", &refaults);
	assert_int_equal(refaults.evicted, 5 * page);
	refaults_parse("workingset_refault 11\nworkingset_activate 1\npgpgin 1\n", &refaults);
	assert_int_equal(refaults.refaulted, 11 * page);
	refaults_parse("", &refaults);
	assert_int_equal(refaults.read, ABSENT);
	assert_int_equal(refaults.refaulted, ABSENT);
	assert_int_equal(refaults.evicted, ABSENT);
}

/* Memory is short where pages are evicted while others come back; otherwise these were evicted long
 * ago. */
static void memory_is_short(void **state)
{
	struct source_status status = {
		.disk_read = 50000000, .refaulted = 40000000, .evicted = 30000000};

	assert_int_equal(source_status_refaulted(&status, 5 * US_PER_SECOND), 80);
	status.evicted = 100000;
	assert_int_equal(source_status_refaulted(&status, 5 * US_PER_SECOND), 0);
	status.evicted = ABSENT;
	assert_int_equal(source_status_refaulted(&status, 5 * US_PER_SECOND), 0);
}

static int64_t rate(struct group_refaults *rates, int64_t now_s)
{
	return group_refaults_rate(rates, fake_tree, 1, 1, now_s * NS_PER_SECOND);
}

/* A rate is over a second at least, and not of a group that was not asked about for long. */
static void rates_of(const char *file)
{
	int64_t page = sysconf(_SC_PAGESIZE);
	struct group_refaults rates;

	group_refaults_init(&rates);
	fake_tree_put(file, "anon 3\nworkingset_refault_file 1000\n");
	assert_int_equal(rate(&rates, 100), ABSENT);
	fake_tree_put(file, "anon 3\nworkingset_refault_file 1600\n");
	assert_int_equal(rate(&rates, 100), ABSENT);
	assert_int_equal(rate(&rates, 102), 300 * page);
	fake_tree_put(file, "anon 3\nworkingset_refault_file 9000\n");
	assert_int_equal(rate(&rates, 102), 300 * page);
	assert_int_equal(rate(&rates, 200), ABSENT);
	/* the group was made again */
	fake_tree_put(file, "anon 3\nworkingset_refault_file 10\n");
	assert_int_equal(rate(&rates, 201), ABSENT);
	fake_tree_put(file, "anon 3\n");
	assert_int_equal(rate(&rates, 203), ABSENT);
	group_refaults_done(&rates);
}

static void version_2(void **state)
{
	fake_tree_mounts("2 1 0:2 / %s/g rw shared:1 - cgroup2 none rw\n");
	fake_tree_put("1/task/1/cgroup", "0::/a/b\n");
	rates_of("g/a/b/memory.stat");
}

static void version_1(void **state)
{
	fake_tree_mounts("2 1 0:2 / %s/m rw shared:1 - cgroup none rw,memory\n");
	fake_tree_put("1/task/1/cgroup", "3:cpu:/other\n2:memory:/a\n0::/c\n");
	rates_of("m/a/memory.stat");
}

static void without(void **state)
{
	struct group_refaults rates;

	group_refaults_init(&rates);
	fake_tree_mounts("");
	fake_tree_put("1/task/1/cgroup", "0::/\n");
	assert_int_equal(rate(&rates, 1), ABSENT);
	group_refaults_done(&rates);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hosts),
		cmocka_unit_test(memory_is_short),
		cmocka_unit_test_setup_teardown(version_2, fake_tree_begin, fake_tree_end),
		cmocka_unit_test_setup_teardown(version_1, fake_tree_begin, fake_tree_end),
		cmocka_unit_test_setup_teardown(without, fake_tree_begin, fake_tree_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
