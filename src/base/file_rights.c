/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/file_rights.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/xattr.h>
#include <unistd.h>

#define PERMISSIONS 07777

static const char *const acls[] = {"system.posix_acl_access", "system.posix_acl_default"};

bool user_is_trusted(uid_t user)
{
	const char *caller = getenv("SUDO_UID");

	return !user || user == geteuid() ||
	       (!geteuid() && caller && *caller && strtoul(caller, NULL, 10) == user);
}

bool only_trusted_write(const struct stat *file)
{
	return user_is_trusted(file->st_uid) && !(file->st_mode & (S_IWGRP | S_IWOTH));
}

mode_t mode_masked(mode_t mode)
{
	mode_t mask = umask(0);

	umask(mask);
	return mode & ~mask;
}

int file_rights_set(int fd, const struct file_rights *rights)
{
	mode_t mode = rights->mode;

	if (fchown(fd, (uid_t)-1, rights->group) && fchown(fd, (uid_t)-1, getegid()))
		mode &= ~(mode_t)S_IRWXG;
	for (size_t i = 0; i < sizeof(acls) / sizeof(acls[0]); i++)
		if (fremovexattr(fd, acls[i]) && fgetxattr(fd, acls[i], NULL, 0) > 0)
			return -EPERM;
	return fchmod(fd, mode) && errno != EPERM ? -errno : 0;
}

bool file_rights_are(int fd, const struct file_rights *rights)
{
	struct stat file;

	return !fstat(fd, &file) && (file.st_gid == rights->group || file.st_gid == getegid()) &&
	       !(file.st_mode & PERMISSIONS & ~rights->mode) &&
	       fgetxattr(fd, acls[0], NULL, 0) <= 0;
}
