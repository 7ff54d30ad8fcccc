/* SPDX-License-Identifier: GPL-2.0-or-later */
/* File systems that are frozen (FIFREEZE, fsfreeze(8)): whoever begins to write waits for the thaw.
 */
#include "waits/kernel_stack.h"
#include "sample/waits_on.h"
#include "waits/wait_object.h"

#include <string.h>

/* A file system is frozen (FIFREEZE) while a writer waits for its semaphore of writers. Others take
 * such semaphores, too, so the function that takes it has to be one that begins to write
 * (include/linux/fs.h, sb_start_write() and others, which are inlined). */
#define WRITE_BEGINNERS                                                                      \
	"mnt_want_write* vfs_write vfs_writev vfs_iter_write vfs_iocb_iter_write do_iter_* " \
	"do_splice* vfs_copy_file_range vfs_fallocate __sb_start_write sb_start_* "          \
	"file_start_write* aio_write io_write *_page_mkwrite do_sendfile"

bool frozen_fs_is_waited_for(const char *stack)
{
	char name[FUNCTION_SIZE];

	if (!function_next(&stack, name) || strcmp(name, "percpu_rwsem_wait") != 0)
		return false;
	while (function_next(&stack, name))
		if (!function_listed("__percpu_down_read percpu_down_read", name))
			return function_listed(WRITE_BEGINNERS, name);
	return false;
}

static bool frozen_fs_of_stack(struct wait *wait, const char *stack, bool runs)
{
	struct mount_facts mount;

	if (runs || !frozen_fs_is_waited_for(stack))
		return false;
	wait->facts = wait_facts_absent;
	wait->facts.stored = true;
	text_clear(wait->text);
	text_add_string(wait->text, WAITS_ON_FROZEN "file system");
	if (wait_mount(wait, &mount))
		text_add_format(wait->text, " %s", mount.point);
	return true;
}

const struct wait_object frozen_fs_object = {.kind = WAIT_FILE, .of_stack = frozen_fs_of_stack};
