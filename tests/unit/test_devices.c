/* SPDX-License-Identifier: GPL-2.0-or-later */
/* proc/devices.h: names of block devices */
#include "unit.h"
#include "live/threads/live_block.h"
#include "proc/devices.h"

#include <sys/stat.h>
#include <unistd.h>

#define DEV(major, minor) ((major##u) << 20 | (minor))

static void links_are_read(void **state)
{
	char root[] = "/tmp/tsnap-unit-XXXXXX", path[128];
	static const struct {
		const char *number, *target, *name;
		uint32_t dev;
	} rows[] = {
		{"7:3", "../../devices/virtual/block/loop3", "loop3", DEV(7, 3)},
		{"104:0", "../../devices/pci0/block/cciss!c0d0", "cciss/c0d0", DEV(104, 0)},
		{"259:1048575", "../../devices/nvme0n1", "nvme0n1", DEV(259, 1048575)},
		{"8:1", "sda1", NULL, DEV(8, 1)},
		{"8:2", "../", NULL, DEV(8, 2)},
	};

	(void)state;
	assert_non_null(mkdtemp(root));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *name;

		snprintf(path, sizeof(path), "%s/%s", root, rows[i].number);
		assert_null(device_link_read(root, rows[i].dev));
		assert_int_equal(symlink(rows[i].target, path), 0);
		name = device_link_read(root, rows[i].dev);
		if (rows[i].name)
			assert_string_equal(name, rows[i].name);
		else
			assert_null(name);
		unlink(path);
	}
	rmdir(root);
}

static void unknown_ones_are_numbers(void **state)
{
	(void)state;
	assert_null(device_name(0));
	assert_string_equal(device_name(DEV(4000, 77)), "4000:77");
	assert_string_equal(device_name(DEV(4000, 77)), "4000:77");
	devices_clear();
	assert_string_equal(device_name(DEV(4000, 78)), "4000:78");
	devices_clear();
}

static void operations_have_words(void **state)
{
	(void)state;
	assert_string_equal(block_op_name(BLOCK_READ), "read");
	assert_string_equal(block_op_name(BLOCK_FLUSH), "flush");
	assert_string_equal(block_op_name(BLOCK_ZEROES), "zeroes");
	assert_string_equal(block_op_name(4), "other");
	assert_string_equal(block_op_name(BLOCK_COMMAND_TO), "command");
	assert_string_equal(block_op_name(BLOCK_OTHER), "other");
	assert_string_equal(block_op_name(~0u), "other");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links_are_read),
		cmocka_unit_test(unknown_ones_are_numbers),
		cmocka_unit_test(operations_have_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
