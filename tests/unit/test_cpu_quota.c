/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Control groups with a quota of CPU time, in trees of both versions. */
#include "unit.h"
#include "fake_tree.h"
#include "base/clock.h"
#include "proc/cpu_quota.h"

#define SECOND NS_PER_SECOND

static int find(struct cpu_quotas *quotas, const char *path, int64_t now_ns)
{
	return cpu_quota_find(quotas, path, strlen(path), now_ns);
}

/* Returns the groups that were counted during the run, as "path=throttled/periods us;". */
static const char *counted(const struct cpu_quotas *quotas)
{
	static char text[512];

	*text = '\0';
	for (size_t i = 0; i < quotas->count; i++) {
		const struct cpu_quota_group *group = &quotas->groups[i];

		if (group->counted_ns)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s=%d/%d %d;",
				 group->path,
				 (int)(group->counts.throttled_periods -
				       group->first.throttled_periods),
				 (int)(group->counts.periods - group->first.periods),
				 (int)(group->counts.throttled_us - group->first.throttled_us));
	}
	return text;
}

static void version_2(void **state)
{
	struct cpu_quotas quotas;
	const struct cpu_quota_group *group;
	int slot;

	fake_tree_mounts("1 1 0:1 / /proc rw - proc proc rw\n2 1 0:2 / %s/g rw shared:1 - cgroup2 "
			 "none rw\n");
	fake_tree_put("g/pod/cpu.max", "20000 100000\n");
	fake_tree_put("g/pod/cpu.stat",
		      "usage_usec 9\nnr_periods 10\nnr_throttled 4\nthrottled_usec 700\n");
	fake_tree_put("g/pod/free/deep/cpu.max", "max 100000\n");
	fake_tree_put("g/pod/small/cpu.max", "1000 100000\n");
	fake_tree_put("g/pod/small/cpu.stat", "nr_periods 1\nnr_throttled 0\nthrottled_usec 0\n");
	cpu_quotas_init(&quotas, fake_tree);
	cpu_quotas_read(&quotas, SECOND);
	fake_tree_put("g/pod/cpu.stat",
		      "usage_usec 9\nnr_periods 15\nnr_throttled 6\nthrottled_usec 900\n");
	/* a group that began since then: all of its counts are new */
	fake_tree_put("g/pod/late/cpu.max", "1000 100000\n");
	fake_tree_put("g/pod/late/cpu.stat", "nr_periods 3\nnr_throttled 2\nthrottled_usec 50\n");
	assert_true(find(&quotas, "/pod/late", 2 * SECOND) >= 0);
	cpu_quotas_read(&quotas, 2 * SECOND);
	assert_non_null(strstr(counted(&quotas), "/pod=2/5 200;"));
	assert_non_null(strstr(counted(&quotas), "/pod/small=0/0 0;"));
	assert_non_null(strstr(counted(&quotas), "/pod/late=2/3 50;"));

	/* groups that hold a thread back, the innermost first */
	assert_int_equal(find(&quotas, "/other/x", 2 * SECOND), -1);
	assert_int_equal(find(&quotas, "/", 2 * SECOND), -1);
	slot = find(&quotas, "/pod/small/a", 2 * SECOND);
	assert_string_equal(quotas.groups[slot].path, "/pod/small");
	slot = cpu_quota_outer(&quotas, slot, 2 * SECOND);
	assert_string_equal(quotas.groups[slot].path, "/pod");
	assert_int_equal(cpu_quota_outer(&quotas, slot, 2 * SECOND), -1);
	slot = find(&quotas, "/pod/free/deep", 2 * SECOND);
	group = cpu_quota_count(&quotas, slot, 3 * SECOND);
	assert_string_equal(group->path, "/pod");
	assert_int_equal(group->throttled_ns, 2 * SECOND);
	assert_true(cpu_quota_holds(group, "/pod", 4));
	assert_true(cpu_quota_holds(group, "/pod/x", 6));
	assert_false(cpu_quota_holds(group, "/pods", 5));

	/* the mounted group may have a quota, too, in a container */
	fake_tree_put("g/cpu.max", "90000 100000\n");
	slot = find(&quotas, "/other/x", 4 * SECOND);
	assert_string_equal(quotas.groups[slot].path, "/");
	assert_true(cpu_quota_holds(&quotas.groups[slot], "/other/x", 8));
	assert_int_equal(cpu_quota_outer(&quotas, slot, 4 * SECOND), -1);
	fake_tree_put("g/cpu.max", "max 100000\n");

	/* a quota that was removed */
	fake_tree_put("g/pod/cpu.max", "max 100000\n");
	assert_int_equal(find(&quotas, "/pod/free/deep", 9 * SECOND), -1);
	cpu_quotas_done(&quotas);
}

static void version_1(void **state)
{
	struct cpu_quotas quotas;

	fake_tree_mounts("2 1 0:2 / /nowhere rw - cgroup2 none rw\n3 1 0:3 / /no rw - cgroup none "
			 "rw,cpuset\n"
			 "4 1 0:4 /docker/1 %s/c rw - cgroup none rw,cpu,cpuacct\n");
	fake_tree_put("c/cpu.cfs_quota_us", "50000\n");
	fake_tree_put("c/cpu.stat", "nr_periods 5\nnr_throttled 1\nthrottled_time 1000\n");
	fake_tree_put("c/a/cpu.cfs_quota_us", "-1\n");
	fake_tree_put("c/a/b/cpu.cfs_quota_us", "20000\n");
	fake_tree_put("c/a/b/cpu.stat", "nr_periods 5\nnr_throttled 1\nthrottled_time 1000000\n");
	cpu_quotas_init(&quotas, fake_tree);
	assert_true(quotas.mount.v1);
	cpu_quotas_read(&quotas, SECOND);
	fake_tree_put("c/a/b/cpu.stat", "nr_periods 6\nnr_throttled 2\nthrottled_time 3500000\n");
	cpu_quotas_read(&quotas, 2 * SECOND);
	assert_string_equal(counted(&quotas), "/docker/1=0/0 0;/docker/1/a/b=1/1 2500;");
	assert_string_equal(quotas.groups[find(&quotas, "/docker/1/a", 2 * SECOND)].path,
			    "/docker/1");
	cpu_quotas_done(&quotas);
}

static void none(void **state)
{
	struct cpu_quotas quotas;

	fake_tree_mounts("1 1 0:1 / %s rw - tmpfs tmpfs rw\nnonsense\n1 2 3 - cgroup2\n");
	cpu_quotas_init(&quotas, fake_tree);
	cpu_quotas_read(&quotas, SECOND);
	assert_int_equal(find(&quotas, "/a", SECOND), -1);
	assert_string_equal(counted(&quotas), "");
	cpu_quotas_done(&quotas);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(version_2, fake_tree_begin, fake_tree_end),
		cmocka_unit_test_setup_teardown(version_1, fake_tree_begin, fake_tree_end),
		cmocka_unit_test_setup_teardown(none, fake_tree_begin, fake_tree_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
