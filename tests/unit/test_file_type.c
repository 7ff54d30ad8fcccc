/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Types of open files, on kernels without statx(2), and mounts of files. */
#include "unit.h"
#include "fake_proc.h"
#include "proc/file_type.h"
#include "proc/mounts.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOUNTS                                                                                   \
	"24 1 8:1 / / rw,relatime shared:1 - nfs4 server:/root rw\n"                             \
	"25 24 0:21 / /run rw,nosuid shared:2 master:7 propagate_from:9 - tmpfs tmpfs rw\n"      \
	"125 24 0:40 / /a\\040-\\040tmpfs rw - overlay overlay rw,lowerdir=/nfs,upperdir=/tmp\n" \
	"126 24 0:41 / /cut rw\n"

/* Type of a descriptor of a fifo, on the mount that fdinfo shows. */
static const char *word_on(const struct fake_proc *proc, const char *fdinfo)
{
	fake_proc_put(proc, 7, 8, "fdinfo/3", fdinfo);
	return file_type_local(proc->root, 7, 8, 3);
}

static void only_local_files_are_asked(void **state)
{
	struct fake_proc proc;
	char path[128];

	fake_proc_init(&proc);
	snprintf(path, sizeof(path), "%s/fifo", proc.root);
	assert_int_equal(mkfifo(path, 0600), 0);
	fake_proc_put(&proc, 7, 8, "fd/3", path);
	fake_proc_put(&proc, 7, 8, "mountinfo", MOUNTS);
	assert_string_equal(word_on(&proc, "pos:\t0\nflags:\t0100000\nmnt_id:\t25\n"), "fifo");
	assert_null(word_on(&proc, "pos:\t0\nflags:\t0100000\nmnt_id:\t24\n"));
	assert_null(word_on(&proc, "pos:\t0\nflags:\t0100000\nmnt_id:\t125\n"));
	assert_null(word_on(&proc, "pos:\t0\nflags:\t0100000\nmnt_id:\t126\n"));
	/* a mount of another mount namespace */
	assert_null(word_on(&proc, "pos:\t0\nflags:\t0100000\nmnt_id:\t2\n"));
	assert_null(word_on(&proc, "pos:\t0\nflags:\t0100000\n"));
	/* type from a kernel with statx(2), on any mount */
	assert_string_equal(file_type_word(proc.root, 7, 8, 3), "fifo");
	assert_int_equal(unlink(path), 0);
	assert_null(word_on(&proc, "mnt_id:\t25\n"));
	assert_null(file_type_word(proc.root, 7, 8, 3));
	fake_proc_done(&proc);
}

/* The mount of a path; NULL: none. */
static const struct mount_facts *mount_of_path(const struct fake_proc *proc, const char *path)
{
	static struct mount_facts mount;

	return mount_find(proc->root, 7, 8, -1, path, &mount) ? &mount : NULL;
}

static void mounts(void **state)
{
	const struct mount_facts *mount;
	struct fake_proc proc;

	fake_proc_init(&proc);
	fake_proc_put(&proc, 7, 8, "mountinfo",
		      MOUNTS "30 24 0:39 / /run/a\\040b rw - fuse.sshfs me@far:/x rw,user_id=0\n"
			     "31 30 0:44 / /run/a\\040b rw - fuse.later x rw\n");
	mount = mount_of_path(&proc, "/run/a b/file");
	assert_non_null(mount);
	/* the later of two mounts on one point covers the other */
	assert_string_equal(mount->type, "fuse.later");
	assert_string_equal(mount->point, "/run/a b");
	assert_int_equal(mount->device, 44);
	assert_string_equal(mount_of_path(&proc, "/run/a bc")->type, "tmpfs");
	assert_string_equal(mount_of_path(&proc, "/running")->type, "nfs4");
	assert_string_equal(mount_of_path(&proc, "/")->source, "server:/root");
	assert_null(mount_of_path(&proc, "file"));
	assert_null(mount_of_path(&proc, NULL));
	fake_proc_put(&proc, 7, 8, "fdinfo/3", "mnt_id:\t30\n");
	mount = mount_of_path(&proc, "/");
	assert_true(mount_find(proc.root, 7, 8, 3, "/", (struct mount_facts *)mount));
	assert_string_equal(mount->source, "me@far:/x");
	assert_string_equal(mount->options, "rw,user_id=0");
	fake_proc_done(&proc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_local_files_are_asked),
		cmocka_unit_test(mounts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
