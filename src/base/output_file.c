/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/output_file.h"
#include "base/output.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* As root a rename would put a file in the place of /dev/null. */
static bool output_is_special(const char *path)
{
	struct stat stat_of;

	return !stat(path, &stat_of) && !S_ISREG(stat_of.st_mode);
}

static int special_write(const char *path, const char *bytes, size_t length)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = output_write(fd, bytes, length);
	return close(fd) && !err ? -errno : err;
}

/* Writes a new file beside path; its name is in beside. Permissions are those of path, or what
 * the umask leaves of 0666. */
static int beside_write(const char *path, char *beside, const char *bytes, size_t length)
{
	struct stat before;
	mode_t mask = umask(0);
	int fd = mkostemp(beside, O_CLOEXEC), err;

	umask(mask);
	if (fd < 0)
		return -errno;
	err = output_write(fd, bytes, length);
	if (fchmod(fd, !stat(path, &before) ? before.st_mode & 0777 : 0666 & ~mask) && !err)
		err = -errno;
	if (close(fd) && !err)
		err = -errno;
	return err;
}

int output_replace(const char *path, const char *bytes, size_t length)
{
	char resolved[PATH_MAX];
	struct text beside = {0};
	int err;

	if (output_is_special(path))
		return special_write(path, bytes, length);
	/* a link stays one */
	if (realpath(path, resolved))
		path = resolved;
	text_add_format(&beside, "%s.XXXXXX", path);
	err = beside_write(path, beside.bytes, bytes, length);
	if (!err && rename(beside.bytes, path))
		err = -errno;
	if (err)
		unlink(beside.bytes);
	text_done(&beside);
	return err;
}

int output_replace_check(const char *path)
{
	struct text folder = {0};
	const char *slash = strrchr(path, '/');
	struct stat stat_of;
	int err;

	if (!stat(path, &stat_of) && !S_ISREG(stat_of.st_mode))
		return S_ISDIR(stat_of.st_mode) ? -EISDIR : access(path, W_OK) ? -errno : 0;
	text_add(&folder, path, slash ? (size_t)(slash - path) : 0);
	text_add_string(&folder, slash ? "/" : ".");
	err = access(text_string(&folder), W_OK | X_OK) ? -errno : 0;
	text_done(&folder);
	return err;
}
