/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/work_dir.h"
#include "base/output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const parents[] = {"/run", "/tmp", "/dev/shm"};

/* A folder that each kernel has, also where / is empty, and that no compiler reads. */
#define MOUNT_PLACE "/proc/fs"

#define PREFIX "tsnap."
#define TRIES 8

static int entry_remove(const char *path, const struct stat *stat, int kind, struct FTW *walk)
{
	(void)stat;
	(void)kind;
	(void)walk;
	remove(path);
	return 0;
}

static void tree_remove(const char *path)
{
	nftw(path, entry_remove, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

void work_dir_remove(struct work_dir *dir)
{
	if (!dir->path[0])
		return;
	tree_remove(dir->path);
	close(dir->lock);
	dir->path[0] = 0;
}

static int directory_open(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* Removes path if this user made it (/tmp is everybody's) and nobody holds its lock. */
static void stale_try(const char *path)
{
	struct stat stat;
	int fd = directory_open(path);

	if (fd < 0)
		return;
	if (!fstat(fd, &stat) && stat.st_uid == geteuid() && !flock(fd, LOCK_EX | LOCK_NB))
		tree_remove(path);
	close(fd);
}

/* True for the name of a work directory: tsnap.PID.XXXXXX. A folder with a similar name is not
 * ours. */
static bool is_name(const char *name)
{
	size_t digits;

	if (strncmp(name, PREFIX, strlen(PREFIX)))
		return false;
	name += strlen(PREFIX);
	digits = strspn(name, "0123456789");
	return digits && name[digits] == '.' && strlen(name + digits) == 7;
}

static void stale_remove(const char *parent)
{
	DIR *dir = opendir(parent);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char path[PATH_MAX];

		if (!is_name(entry->d_name))
			continue;
		snprintf(path, sizeof(path), "%s/%s", parent, entry->d_name);
		stale_try(path);
	}
	if (dir)
		closedir(dir);
}

/* Locks the directory. 0; -ENOENT: another tsnap took it for stale before that, and it is gone; or
 * -errno. */
static int lock_take(struct work_dir *dir)
{
	struct stat locked, named;

	dir->lock = directory_open(dir->path);
	if (dir->lock < 0)
		return -errno;
	/* a file system without locks: nobody else gets one either */
	flock(dir->lock, LOCK_EX);
	if (!fstat(dir->lock, &locked) && !lstat(dir->path, &named) &&
	    locked.st_ino == named.st_ino && locked.st_dev == named.st_dev)
		return 0;
	close(dir->lock);
	return -ENOENT;
}

int work_dir_make(struct work_dir *dir, struct error *e)
{
	int failed = 0;

	for (size_t i = 0; i < sizeof(parents) / sizeof(parents[0]); i++)
		stale_remove(parents[i]);
	for (size_t i = 0; i < sizeof(parents) / sizeof(parents[0]); i++)
		for (int n = 0; n < TRIES && (!n || failed == ENOENT); n++) {
			snprintf(dir->path, WORK_DIR_PATH_SIZE, "%s/" PREFIX "%ld.XXXXXX",
				 parents[i], (long)getpid());
			if (!mkdtemp(dir->path)) {
				failed = errno;
				break;
			}
			failed = -lock_take(dir);
			if (!failed)
				return 0;
			rmdir(dir->path);
		}
	dir->path[0] = 0;
	return error_set(e, failed, EXIT_FAILED,
			 "no temporary directory can be made in /run, /tmp or /dev/shm: %s",
			 strerror(failed));
}

const char *work_dir_mount(void)
{
	/* private, else the host would see the mount, too */
	if (unshare(CLONE_NEWNS) || mount(NULL, "/proc", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mount("tsnap", MOUNT_PLACE, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0700"))
		return NULL;
	return MOUNT_PLACE;
}

int work_dir_write(const char *path, const char *name, const char *text, struct error *e)
{
	char full[PATH_MAX];
	int fd = -1, failed = 0;

	snprintf(full, sizeof(full), "%s/%s", path, name);
	for (char *slash = strchr(full + 1, '/'); slash && !failed;
	     slash = strchr(slash + 1, '/')) {
		*slash = 0;
		if (mkdir(full, 0700) && errno != EEXIST)
			failed = errno;
		*slash = '/';
	}
	if (!failed) {
		fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
		failed = fd < 0 ? errno : -output_write(fd, text, strlen(text));
	}
	if (fd >= 0)
		close(fd);
	if (!failed)
		return 0;
	return error_set(e, failed, EXIT_FAILED, "'%s' can't be written: %s", full,
			 strerror(failed));
}
