/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "stack/process_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* include/uapi/linux/openat2.h, which distributions of 2019 lack */
#ifndef __NR_openat2
#define __NR_openat2 437
#endif
#define RESOLVE_NO_MAGICLINKS_BIT 0x02
#define RESOLVE_NO_SYMLINKS_BIT 0x04
#define RESOLVE_IN_ROOT_BIT 0x10

struct how {
	__u64 flags, mode, resolve;
};

static int openat_within(int root, const char *path, bool plain)
{
	struct how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
			  .resolve = RESOLVE_IN_ROOT_BIT | RESOLVE_NO_MAGICLINKS_BIT};
	long fd;

	if (plain)
		how.resolve |= RESOLVE_NO_SYMLINKS_BIT;
	fd = syscall(__NR_openat2, root, path, &how, sizeof(how));
	if (fd >= 0 || (errno != ENOSYS && errno != EPERM))
		return fd < 0 ? -errno : (int)fd;
	/* before 5.6: only the last part is known to be no link */
	fd = openat(root, path, (int)how.flags | O_NOFOLLOW);
	return fd < 0 ? -errno : (int)fd;
}

int process_file_open(const char *proc_root, int64_t tid, const char *path, bool plain)
{
	char directory[PATH_MAX];
	struct stat file;
	int root, fd;

	snprintf(directory, sizeof(directory), "%s/%lld/root", proc_root, (long long)tid);
	root = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	fd = openat_within(root, path, plain);
	close(root);
	if (fd >= 0 && (fstat(fd, &file) || !S_ISREG(file.st_mode))) {
		close(fd);
		return -EINVAL;
	}
	return fd;
}

bool process_has_root(const char *proc_root, int64_t tid)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%lld/root", proc_root, (long long)tid);
	return !access(path, F_OK);
}

/* The last of the ids that status has in that line, or tid if it has none; -1: it is gone. */
static int64_t status_inner(const char *proc_root, int64_t tid, const char *key)
{
	char path[PATH_MAX], text[4096], *line, *last;
	ssize_t length;
	int fd;

	snprintf(path, sizeof(path), "%s/%lld/status", proc_root, (long long)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (length <= 0)
		return -1;
	text[length] = '\0';
	line = strstr(text, key);
	if (!line)
		return tid;
	line += strlen(key);
	line[strcspn(line, "\n")] = '\0';
	last = strrchr(line, '\t');
	return strtoll(last ? last + 1 : line, NULL, 10);
}

/* NStgid and NSpid, 4.1: ids in each namespace, the innermost last. */
int64_t process_inner_pid(const char *proc_root, int64_t tid)
{
	return status_inner(proc_root, tid, "\nNStgid:\t");
}

int64_t thread_inner_tid(const char *proc_root, int64_t tid)
{
	return status_inner(proc_root, tid, "\nNSpid:\t");
}
