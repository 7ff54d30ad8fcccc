/* SPDX-License-Identifier: GPL-2.0-or-later */
/* proc/devices.h: names of block devices */
#include "unit.h"
#include "live/threads/live_block.h"
#include "proc/devices.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define DEV_OF(major, minor) ((major) << 20 | (minor))
#define DEV(major, minor) DEV_OF(major##u, minor)

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

/* A disk has a file, a part of it the file of the disk; a / in a name is a ! there. */
static void disks_that_rotate(void **state)
{
	char root[] = "/tmp/tsnap-unit-XXXXXX", command[512];

	assert_non_null(mkdtemp(root));
	snprintf(command, sizeof(command),
		 "cd %s && mkdir -p disks/sda/queue disks/sda/sda1 disks/sdb/queue "
		 "'cciss!c0d0/queue' && "
		 "ln -s disks/* . && ln -s disks/sda/sda1 . && echo 1 >sda/queue/rotational && "
		 "echo 0 >sdb/queue/rotational && echo 1 >'cciss!c0d0/queue/rotational'",
		 root);
	assert_int_equal(system(command), 0);
	assert_int_equal(device_rotates(root, "sda"), 1);
	assert_int_equal(device_rotates(root, "sda1"), 1);
	assert_int_equal(device_rotates(root, "sdb"), 0);
	assert_int_equal(device_rotates(root, "cciss/c0d0"), 1);
	assert_int_equal(device_rotates(root, "sdc"), ABSENT);
	assert_int_equal(device_rotates(root, "../sda"), ABSENT);
	snprintf(command, sizeof(command), "rm -r %s", root);
	assert_int_equal(system(command), 0);
}

static void below(const char *root, const char *name, const char *expected)
{
	const char *found = device_below_read(root, name);

	if (expected)
		assert_string_equal(found, expected);
	else
		assert_null(found);
}

/* Devices that are mapped to others have links to these, loop devices the path of their file. */
static void devices_below_others(void **state)
{
	char root[] = "/tmp/tsnap-unit-XXXXXX", command[PATH_MAX + 1024], program[PATH_MAX] = "";
	struct stat file;

	assert_non_null(mkdtemp(root));
	assert_true(readlink("/proc/self/exe", program, sizeof(program) - 1) > 0);
	assert_int_equal(stat(program, &file), 0);
	snprintf(command, sizeof(command),
		 "cd %s && mkdir -p disks/sda/sda1 disks/sda/slaves disks/dm-0/slaves/sda1 "
		 "disks/md0/slaves/sda disks/md0/slaves/sdb disks/md0/md0p1 disks/dm-1/dm-1p1 "
		 "'disks/dm-1/slaves/cciss!c0d0' disks/loop0/loop disks/loop0/slaves "
		 "disks/loop0/loop0p1 disks/loop1/loop 'disks/cciss!c0d1/slaves/sda' && "
		 "ln -s disks/* disks/*/*[0-9]p1 disks/sda/sda1 . && "
		 "echo '%s' >loop0/loop/backing_file && "
		 "echo '/tmp/removed (deleted)' >loop1/loop/backing_file",
		 root, program);
	assert_int_equal(system(command), 0);
	below(root, "sda", NULL);
	below(root, "sda1", NULL);
	below(root, "dm-0", "sda1");
	below(root, "md0", NULL); /* several */
	below(root, "md0p1", NULL);
	below(root, "dm-1", "cciss/c0d0");
	below(root, "dm-1p1", "cciss/c0d0");
	below(root, "cciss/c0d1", "sda");
	below(root, "sdz", NULL);
	below(root, "../sda", NULL);
	below(root, "loop1", NULL);
	/* a file system without a device has none below */
	below(root, "loop0",
	      major(file.st_dev) ? device_name(DEV_OF(major(file.st_dev), minor(file.st_dev)))
				 : NULL);
	below(root, "loop0p1", device_below_read(root, "loop0"));
	snprintf(command, sizeof(command), "rm -r %s", root);
	assert_int_equal(system(command), 0);
	devices_clear();
}

static void unknown_ones_are_numbers(void **state)
{
	assert_null(device_name(0));
	assert_string_equal(device_name(DEV(4000, 77)), "4000:77");
	assert_string_equal(device_name(DEV(4000, 77)), "4000:77");
	devices_clear();
	assert_string_equal(device_name(DEV(4000, 78)), "4000:78");
	devices_clear();
}

static void operations_have_words(void **state)
{
	assert_string_equal(block_op_name(BLOCK_READ), "read");
	assert_string_equal(block_op_name(BLOCK_FLUSH), "flush");
	assert_string_equal(block_op_name(BLOCK_ZEROES), "zeroes");
	assert_string_equal(block_op_name(4), "other");
	assert_string_equal(block_op_name(BLOCK_COMMAND_TO), "command");
	assert_string_equal(block_op_name(BLOCK_OTHER), "other");
	assert_string_equal(block_op_name(~0u), "other");
}

static struct block_flight flight(uint32_t tid, uint32_t tgid, uint32_t dev, uint64_t queue_ns,
				  const char *comm)
{
	struct block_flight made = {.key = {.request = tid, .dev = dev},
				    .request = {.queue_ns = queue_ns,
						.dev = dev,
						.op = BLOCK_WRITE,
						.bytes = 4096,
						.tid = tid,
						.tgid = tgid}};

	snprintf(made.request.comm, sizeof(made.request.comm), "%s", comm);
	return made;
}

static void reported(struct live_block *block, const struct block_flights *flights, uint32_t tid,
		     uint32_t tgid, const char *others)
{
	const struct thread_state record = {.sched.tid = tid, .identity.tgid = tgid};
	struct sample sample = *sample_absent();

	live_block_fill(block, flights, &record, 1000000, &sample);
	assert_string_equal(sample.io.dev, "4000:1");
	assert_string_equal(sample.io.op, "write");
	if (others)
		assert_string_equal(sample.io.others, others);
	else
		assert_null(sample.io.others);
}

/* Names of the other processes at a device: not the process itself, no name twice, the ones with
 * most requests. */
static void others_are_named(void **state)
{
	struct block_flight items[] = {
		flight(11, 10, DEV(4000, 1), 1000, "reader"),
		flight(12, 10, DEV(4000, 1), 2000, "reader2"),
		flight(21, 20, DEV(4000, 1), 1000, "writer"),
		flight(31, 30, DEV(4000, 1), 1000, "kworker/u8:1"),
		flight(32, 30, DEV(4000, 1), 1000, "kworker/u8:1"),
		flight(41, 40, DEV(4000, 1), 1000, "writer"),
		flight(51, 50, DEV(4000, 2), 1000, "elsewhere"),
		flight(61, 60, DEV(4000, 1), 2000000, "later"),
	};
	struct block_flights flights = {.items = items, .count = 3};
	struct live_block block = {.of_ns = 0};

	reported(&block, &flights, 11, 10, "writer");
	reported(&block, &flights, 21, 20, "reader2");
	flights.count = sizeof(items) / sizeof(*items);
	block.of_ns = 0;
	reported(&block, &flights, 11, 10, "kworker/u8:1, writer");
	reported(&block, &flights, 21, 20, "kworker/u8:1, reader2, writer");
	flights.count = 2;
	block.of_ns = 0;
	reported(&block, &flights, 12, 10, NULL);
	live_block_done(&block);
	devices_clear();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(links_are_read),	    cmocka_unit_test(disks_that_rotate),
		cmocka_unit_test(unknown_ones_are_numbers), cmocka_unit_test(operations_have_words),
		cmocka_unit_test(others_are_named),	    cmocka_unit_test(devices_below_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
