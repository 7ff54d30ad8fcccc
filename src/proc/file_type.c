/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/file_type.h"
#include "proc/mounts.h"
#include "proc/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define QUEUE_BYTES 80 /* size of each file of mqueue: FILENT_SIZE of ipc/mqueue.c */

static const char *mode_word(unsigned int mode)
{
	switch (mode & S_IFMT) {
	case S_IFREG:
		return "file";
	case S_IFDIR:
		return "dir";
	case S_IFCHR:
		return "char";
	case S_IFBLK:
		return "block";
	case S_IFIFO:
		return "fifo";
	default:
		return "other";
	}
}

/* True for a message queue, mq_overview(7). mq_open(3) opens it on a mount that no process sees,
 * where its link is "/NAME". */
static bool is_queue(const char *root, int64_t pid, int64_t tid, int fd, const struct statx *found)
{
	char name[32], link[PATH_MAX];
	struct mount_facts mount;

	if (!S_ISREG(found->stx_mode) || found->stx_dev_major || found->stx_size != QUEUE_BYTES)
		return false;
	if (mount_find(root, pid, tid, fd, NULL, &mount))
		return !strcmp(mount.type, "mqueue");
	snprintf(name, sizeof(name), "fd/%d", fd);
	return proc_link_read(root, pid, tid, name, link, sizeof(link)) > 0 &&
	       strrchr(link, '/') == link;
}

static void descriptor_path(char path[PATH_MAX], const char *root, int64_t pid, int64_t tid, int fd)
{
	snprintf(path, PATH_MAX, "%s/%lld/task/%lld/fd/%d", root, (long long)pid, (long long)tid,
		 fd);
}

const char *file_type_local(const char *root, int64_t pid, int64_t tid, int fd)
{
	char path[PATH_MAX];
	struct mount_facts mount;
	struct stat found;

	if (!mount_find(root, pid, tid, fd, NULL, &mount) || !mount_is_local(&mount))
		return NULL;
	descriptor_path(path, root, pid, tid, fd);
	return stat(path, &found) ? NULL : mode_word(found.st_mode);
}

const char *file_type_word(const char *root, int64_t pid, int64_t tid, int fd)
{
	char path[PATH_MAX];
	struct statx found;

	descriptor_path(path, root, pid, tid, fd);
	if (!statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE | STATX_SIZE, &found))
		return is_queue(root, pid, tid, fd, &found) ? "mqueue" : mode_word(found.stx_mode);
	/* EINVAL: from glibc's substitute on a kernel without the call; EPERM: from a seccomp
	 * filter that does not know it */
	if (errno == ENOSYS || errno == EINVAL || errno == EPERM)
		return file_type_local(root, pid, tid, fd);
	return NULL;
}
