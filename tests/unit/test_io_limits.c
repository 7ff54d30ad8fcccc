/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Control groups with limits of I/O, in trees of both versions. */
#include "unit.h"
#include "fake_tree.h"
#include "base/clock.h"
#include "proc/io_limits.h"

#define SECOND NS_PER_SECOND

/* Returns all limits, as "path word=limit dev used;". */
static const char *reported(const struct io_limits *limits)
{
	static char text[512];

	*text = '\0';
	for (size_t i = 0; i < limits->count; i++)
		for (size_t j = 0; j < limits->groups[i].count; j++) {
			const struct io_limit *limit = &limits->groups[i].limits[j];

			snprintf(text + strlen(text), sizeof(text) - strlen(text),
				 "%s %s=%d %u:%u %d;", limits->groups[i].path,
				 io_limit_word(limit->kind), (int)limit->limit, limit->dev >> 20,
				 limit->dev & 0xfffff, (int)(limit->used - limit->first));
		}
	return text;
}

/* Reads until that number of groups is found: a walk takes 20 ms at most, whatever else runs on the
 * CPU. */
static void read_all(struct io_limits *limits, size_t groups)
{
	static int64_t now_ns;

	do {
		now_ns += 11 * SECOND;
		io_limits_read(limits, now_ns);
	} while (limits->count < groups);
}

static void version_2(void **state)
{
	struct io_limits limits;

	fake_tree_mounts("2 1 0:2 / %s/g rw shared:1 - cgroup2 none rw\n");
	fake_tree_put("g/pod/a/io.max",
		      "8:16 rbps=2097152 wbps=max riops=max wiops=120\n8:0 rbps=7 wbps=max "
		      "riops=max wiops=max\n");
	fake_tree_put("g/pod/a/io.stat",
		      "8:0 \n8:16 rbytes=100 wbytes=50 rios=4 wios=3 dbytes=0 dios=0\n");
	fake_tree_put("g/pod/io.max", "");
	fake_tree_put("g/pod/io.stat", "8:16 rbytes=100 wbytes=50 rios=4 wios=3\n");
	io_limits_init(&limits, fake_tree);
	read_all(&limits, 1);
	assert_string_equal(reported(&limits), "/pod/a rbps=2097152 8:16 0;/pod/a wiops=120 8:16 0;"
					       "/pod/a rbps=7 8:0 0;");
	fake_tree_put("g/pod/a/io.stat",
		      "8:16 rbytes=1100 wbytes=50 rios=9 wios=5\n8:0 rbytes=3 wbytes=0\n");
	fake_tree_put("g/pod/a/io.max", "8:16 rbps=4096 wbps=max riops=max wiops=120\n");
	/* a limit that is set later: earlier use does not count */
	fake_tree_put("g/pod/io.max", "8:16 rbps=max wbps=1000 riops=max wiops=max\n");
	io_limits_read(&limits, limits.walked_ns + 1);
	assert_string_equal(reported(&limits), "/pod/a rbps=4096 8:16 1000;/pod/a wiops=120 8:16 2;"
					       "/pod/a rbps=0 8:0 0;");
	read_all(&limits, 2);
	assert_non_null(strstr(reported(&limits), "/pod wbps=1000 8:16 0;"));
	fake_tree_put("g/pod/io.stat", "8:16 rbytes=100 wbytes=90 rios=4 wios=3\n");
	io_limits_read(&limits, limits.walked_ns + 1);
	assert_non_null(strstr(reported(&limits), "/pod wbps=1000 8:16 40;"));
	io_limits_done(&limits);
}

static void version_1(void **state)
{
	struct io_limits limits;

	fake_tree_mounts("2 1 0:2 / /nowhere rw - cgroup2 none rw\n4 1 0:4 / %s/b rw - cgroup none "
			 "rw,blkio\n");
	fake_tree_put("b/x/blkio.throttle.read_bps_device", "254:0 1048576\n");
	fake_tree_put("b/x/blkio.throttle.write_bps_device", "");
	fake_tree_put("b/x/blkio.throttle.read_iops_device", "254:0 50\n7:1 60\n");
	fake_tree_put("b/x/blkio.throttle.write_iops_device", "");
	fake_tree_put("b/x/blkio.throttle.io_service_bytes",
		      "254:0 Read 10\n254:0 Write 5\n254:0 Total 15\n");
	fake_tree_put("b/x/blkio.throttle.io_serviced",
		      "254:0 Read 1\n254:0 Write 5\n7:1 Read 2\nTotal 8\n");
	io_limits_init(&limits, fake_tree);
	read_all(&limits, 1);
	fake_tree_put("b/x/blkio.throttle.io_service_bytes",
		      "254:0 Read 30\n254:0 Write 5\n254:0 Total 35\n");
	fake_tree_put("b/x/blkio.throttle.io_serviced",
		      "254:0 Read 4\n254:0 Write 5\n7:1 Read 9\nTotal 8\n");
	io_limits_read(&limits, limits.walked_ns + 1);
	assert_string_equal(reported(&limits), "/x rbps=1048576 254:0 20;/x riops=50 254:0 3;"
					       "/x riops=60 7:1 7;");
	io_limits_done(&limits);
}

static void without(void **state)
{
	struct io_limits limits;

	fake_tree_mounts("1 1 0:1 / /%s rw - proc proc rw\n");
	io_limits_init(&limits, fake_tree);
	io_limits_read(&limits, SECOND);
	assert_int_equal(limits.count, 0);
	io_limits_done(&limits);
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
