/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Files of file systems, devices, and all other files of which no other object knows more than the
 * name. */
#include "base/names.h"
#include "proc/devices.h"
#include "waits/wait_object.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define DEVICES_BELOW_MAX 8 /* levels of devices that chains tell */

/* True for a file of a file system for data. */
static bool path_is_stored(const char *path)
{
	static const char *const others[] = {"/dev/", "/proc/", "/sys/", "/memfd:"};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (!strncmp(path, others[i], strlen(others[i])))
			return false;
	return *path == '/';
}

static void path_describe(struct wait *wait)
{
	wait->facts.stored = path_is_stored(wait->link);
	text_add_string(wait->text, wait->link);
}

/* "loop0 io> sda1": the device, and those below it that its requests lead to. */
static const char *device_and_below(const char *device)
{
	static struct text text;

	text_clear(&text);
	text_add_string(&text, device);
	for (int i = 0; i < DEVICES_BELOW_MAX && (device = device_below(device)); i++)
		text_add_format(&text, " %s> %s", edge_kinds[EDGE_IO].name, device);
	return name_transient(text_string(&text), text.length);
}

void disk_edge(const struct wait_facts *facts, const struct sample *sample, struct edge *edge)
{
	(void)facts;
	if (!sample->io.dev)
		return;
	edge->kind = EDGE_IO;
	edge->thing = device_and_below(sample->io.dev);
}

const struct wait_object file_object = {
	.kind = WAIT_FILE,
	.links =
		(const struct wait_link[]){
			{"/", NULL},
			{"/memfd:", "memfd"},
			{"anon_inode:", "anon"},
			{"", "other"}, /* mnt:[4026531841] */
			{0},
		},
	.describe = path_describe,
	.edge = disk_edge,
};

/* True if the descriptor's file is on a block device, which no server is. */
static bool has_device(const struct wait *wait)
{
	char path[PATH_MAX];
	struct statx found;

	snprintf(path, sizeof(path), "%s/%lld/task/%lld/fd/%d", wait->waits->root,
		 (long long)wait->pid, (long long)wait->tid, wait->fd);
	return !statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE, &found) &&
	       found.stx_dev_major;
}

/* Describes a wait for the data of the call's file, or to write it. */
static void disk_describe(struct wait *wait)
{
	const struct wait_object *server = NULL;
	struct mount_facts mount;

	if (!wait->link || !path_is_stored(wait->link))
		return;
	if (!wait->numbers_only && wait->fd >= 0 && !has_device(wait) && wait_mount(wait, &mount))
		server = wait_object_of_mount(&mount);
	if (server)
		wait_describe(wait, server, server->describe);
	else
		path_describe(wait);
}

/* Functions that wait for a disk: they call io_schedule(), wait_for_completion_io() and the like,
 * which wchan does not show. Of Linux 4.9 to 6.18. */
const struct wait_object disk_object = {
	.kind = WAIT_FILE,
	.functions = (const char *const[]){"folio_wait_bit_common",
					   "folio_put_wait_locked",
					   "wait_on_page_bit",
					   "wait_on_page_bit_common",
					   "wait_on_page_bit_killable",
					   "__lock_page",
					   "__lock_page_killable",
					   "put_and_wait_on_page_locked",
					   "__wait_on_buffer",
					   "__lock_buffer",
					   "submit_bio_wait",
					   "blk_wait_io",
					   "blk_execute_rq",
					   "blkdev_issue_flush",
					   "blk_mq_get_tag",
					   "get_request",
					   "rq_qos_wait",
					   "wbt_wait",
					   "blk_io_schedule",
					   "blk_throtl_bio",
					   "__blkdev_direct_IO",
					   "__blkdev_direct_IO_simple",
					   "do_blockdev_direct_IO",
					   "__blockdev_direct_IO",
					   "iomap_dio_rw",
					   "__iomap_dio_rw",
					   "dio_complete",
					   "do_get_write_access",
					   "jbd2_journal_commit_transaction",
					   "jbd2_log_do_checkpoint",
					   "xfs_buf_iowait",
					   "_xfs_buf_ioapply",
					   "xlog_wait_on_iclog",
					   "xlog_force_lsn",
					   "xfs_log_force_seq",
					   "xlog_cil_force_seq",
					   "xlog_grant_head_wait",
					   "read_extent_buffer_pages",
					   "btrfs_start_ordered_extent",
					   "btrfs_wait_ordered_range",
					   "btrfs_sync_log",
					   "wait_log_commit",
					   "wait_current_trans",
					   "btrfs_commit_transaction",
					   "f2fs_issue_flush",
					   "f2fs_wait_on_page_writeback",
					   "wb_wait_for_completion",
					   "__writeback_inodes_sb_nr",
					   "md_super_wait",
					   "raid5_get_active_stripe",
					   "dm_io",
					   NULL},
	.faults = true,
	.describe = disk_describe,
	.edge = disk_edge,
};
