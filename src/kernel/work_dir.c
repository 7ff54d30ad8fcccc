/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/work_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The last is writable in containers whose root is not. */
static const char *const parents[] = {"/run", "/tmp", "/dev/shm"};

#define PREFIX "tsnap."

/* "tsnap.4026531836.": a directory may be shared with containers, whose processes can't be told to
 * be gone. */
static void prefix_write(char *prefix, size_t size)
{
	struct stat space = {0};

	if (stat("/proc/self/ns/pid", &space))
		space.st_ino = 0;
	snprintf(prefix, size, PREFIX "%llu.", (unsigned long long)space.st_ino);
}

static int entry_remove(const char *path, const struct stat *stat, int kind, struct FTW *walk)
{
	(void)stat;
	(void)kind;
	(void)walk;
	remove(path);
	return 0;
}

void work_dir_remove(const char *path)
{
	if (path[0])
		nftw(path, entry_remove, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* Whether name is prefix, then PID.XXXXXX of a process that is gone. */
static bool is_stale(const char *name, const char *prefix)
{
	char *end;
	long pid;

	if (strncmp(name, prefix, strlen(prefix)))
		return false;
	pid = strtol(name + strlen(prefix), &end, 10);
	return pid > 0 && *end == '.' && strlen(end) == 7 && kill((pid_t)pid, 0) && errno == ESRCH;
}

static void stale_remove(const char *parent, const char *prefix)
{
	DIR *dir = opendir(parent);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char path[PATH_MAX];
		struct stat stat;

		if (!is_stale(entry->d_name, prefix))
			continue;
		snprintf(path, sizeof(path), "%s/%s", parent, entry->d_name);
		/* only what this user made: /tmp is everybody's */
		if (!lstat(path, &stat) && S_ISDIR(stat.st_mode) && stat.st_uid == geteuid())
			work_dir_remove(path);
	}
	if (dir)
		closedir(dir);
}

int work_dir_make(char path[WORK_DIR_PATH_SIZE], struct error *e)
{
	char prefix[32];
	int failed = 0;

	prefix_write(prefix, sizeof(prefix));
	for (size_t i = 0; i < sizeof(parents) / sizeof(parents[0]); i++)
		stale_remove(parents[i], prefix);
	for (size_t i = 0; i < sizeof(parents) / sizeof(parents[0]); i++) {
		snprintf(path, WORK_DIR_PATH_SIZE, "%s/%s%ld.XXXXXX", parents[i], prefix,
			 (long)getpid());
		if (mkdtemp(path))
			return 0;
		failed = errno;
	}
	path[0] = 0;
	return error_set(e, failed, EXIT_FAILED,
			 "no temporary directory can be made in /run, /tmp or /dev/shm, and one is "
			 "needed for a moment: %s",
			 strerror(failed));
}

int work_dir_write(const char *path, const char *name, const char *text, struct error *e)
{
	char full[PATH_MAX];
	size_t left = strlen(text);
	int fd, failed = 0;

	snprintf(full, sizeof(full), "%s/%s", path, name);
	for (char *slash = strchr(full + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		mkdir(full, 0700);
		*slash = '/';
	}
	fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	while (fd >= 0 && left) {
		ssize_t put = write(fd, text, left);

		if (put < 0)
			break;
		text += put;
		left -= (size_t)put;
	}
	if (fd < 0 || left)
		failed = errno;
	if (fd >= 0)
		close(fd);
	if (!failed)
		return 0;
	return error_set(e, failed, EXIT_FAILED, "'%s' can't be written: %s", full,
			 strerror(failed));
}
