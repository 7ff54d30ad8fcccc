/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Counts of block devices, from lines of 4.9 and of 6.x. */
#include "proc/disk_stats.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static size_t stats_of(const char *text, struct disk_stats stats[DISK_STATS_MAX])
{
	char path[] = "/tmp/tsnap_unit_XXXXXX";
	int fd = mkstemp(path);
	size_t count;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	count = disk_stats_read(path, stats);
	unlink(path);
	return count;
}

static void reads_and_writes_are_summed(void **state)
{
	struct disk_stats stats[DISK_STATS_MAX];

	assert_int_equal(stats_of("   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0\n"
				  "   8       0 sda 100 5 4000 250 50 7 900 1750 3 900 2000\n"
				  " 259       1 nvme0n1p1 7 0 56 3 0 0 0 0 0 2 3 0 0 0 0 9 9\n",
				  stats),
			 2);
	assert_string_equal(stats[0].device, "sda");
	assert_int_equal(stats[0].requests, 150);
	assert_int_equal(stats[0].taken_ms, 2000);
	assert_int_equal(stats[0].in_flight, 3);
	assert_string_equal(stats[1].device, "nvme0n1p1");
	assert_int_equal(stats[1].requests, 7);
	assert_int_equal(stats[1].taken_ms, 3);
}

/* More devices than are kept, lines that are none, and a file that is not there. */
static void what_is_no_device_is_left_out(void **state)
{
	struct disk_stats stats[DISK_STATS_MAX];
	char text[DISK_STATS_MAX * 3 * 64], *at = text;

	for (int i = 0; i < DISK_STATS_MAX * 2; i++)
		at += sprintf(at, "8 %d sd%d 1 0 8 4 0 0 0 0 0 4 4\n", i, i);
	assert_int_equal(stats_of(text, stats), DISK_STATS_MAX);
	assert_int_equal(stats_of("\n8 0 sda 1\nsda 1 2 3\n", stats), 0);
	assert_int_equal(stats_of("", stats), 0);
	assert_int_equal(disk_stats_read("/nonexistent", stats), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_and_writes_are_summed),
		cmocka_unit_test(what_is_no_device_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
