/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/paths.h"
#include "proc/proc.h"
#include "proc/syscalls.h"
#include "proc/user_memory.h"
#include "sample/sample.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* Reads the path of the directory that a relative path begins at. */
static ssize_t directory_read(const char *root, const struct sample *sample, int dir_arg,
			      char *path, size_t size)
{
	int fd = dir_arg < 0 ? AT_FDCWD : (int)(uint32_t)sample->call.arg[dir_arg];
	char name[32] = "cwd";

	if (fd != AT_FDCWD)
		snprintf(name, sizeof(name), "fd/%d", fd);
	return proc_link_read(root, sample->thread.pid, sample->thread.tid, name, path, size);
}

ssize_t call_path_read(const char *root, const struct sample *sample, bool compat, char *path,
		       size_t size)
{
	struct syscall_path at = syscall_path(sample->call.nr, compat);
	char given[PATH_MAX];
	ssize_t length = 0;
	uint64_t address;

	if (at.arg < 0)
		return -EINVAL;
	address = compat ? (uint32_t)sample->call.arg[at.arg] : (uint64_t)sample->call.arg[at.arg];
	length = user_text_read(root, sample->thread.pid, sample->thread.tid, address, given,
				sizeof(given));
	if (length <= 0)
		return length ? length : -ENOENT;
	if (*given != '/')
		length = directory_read(root, sample, at.dir_arg, path, size);
	else
		length = 0;
	if (length < 0)
		length = 0; /* the directory can't be read: the path stays relative */
	return snprintf(path + length, size - (size_t)length, "%s%s", length ? "/" : "", given) +
	       length;
}
