/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "waits/end_users.h"
#include "keeper/avoid.h"
#include "proc/proc.h"
#include "proc/syscalls.h"
#include "waits/lock_list.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CHILDREN_BYTES 4096

struct family {
	const char *root;
	int64_t pids[END_FAMILY_MAX];
	size_t count;
};

bool end_is_had(const char *root, int64_t pid, int fd, const char *link, uint32_t mode_bits)
{
	char name[32], path[PATH_MAX], target[PATH_MAX];
	struct stat end;

	if (avoids_process(pid))
		return false;
	if (!mode_bits)
		return lock_is_had(root, pid, fd, link);
	snprintf(name, sizeof(name), "fd/%d", fd);
	if (proc_link_read(root, 0, pid, name, target, sizeof(target)) <= 0 ||
	    strcmp(target, link) != 0)
		return false;
	snprintf(path, sizeof(path), "%s/%lld/%s", root, (long long)pid, name);
	return !lstat(path, &end) && (end.st_mode & (S_IRUSR | S_IWUSR)) == mode_bits;
}

bool end_is_among(const char *root, int64_t pid, const char *link, uint32_t mode_bits)
{
	const struct dirent *entry;
	int left = END_FDS_MAX;
	char path[PATH_MAX];
	bool found = false;
	DIR *fds;

	if (avoids_process(pid))
		return false;
	snprintf(path, sizeof(path), "%s/%lld/fd", root, (long long)pid);
	fds = opendir(path);
	while (fds && !found && left && (entry = readdir(fds))) {
		if (!isdigit((unsigned char)*entry->d_name))
			continue;
		left--;
		found = end_is_had(root, pid, atoi(entry->d_name), link, mode_bits);
	}
	if (fds)
		closedir(fds);
	return found;
}

static void family_add(struct family *family, int64_t pid)
{
	for (size_t i = 0; i < family->count; i++)
		if (family->pids[i] == pid)
			return;
	if (pid > 0 && family->count < END_FAMILY_MAX)
		family->pids[family->count++] = pid;
}

/* Adds the children that the process's first thread started; CONFIG_PROC_CHILDREN. */
static void children_add(struct family *family, int64_t pid)
{
	char text[CHILDREN_BYTES], *at = text, *end;

	if (pid <= 0 || proc_file_read(family->root, pid, pid, "children", text, sizeof(text)) <= 0)
		return;
	for (;;) {
		int64_t child = strtoll(at, &end, 10);

		/* the last id may have been cut */
		if (end == at || !*end)
			return;
		family_add(family, child);
		at = end;
	}
}

/* True if a thread of the process is in a system call on the descriptor. */
static bool is_in_call(const char *root, int64_t pid, int fd)
{
	const struct dirent *entry;
	struct proc_syscall call;
	char path[PATH_MAX];
	int left = END_THREADS_MAX;
	bool found = false;
	DIR *tasks;

	snprintf(path, sizeof(path), "%s/%lld/task", root, (long long)pid);
	tasks = opendir(path);
	while (tasks && !found && left && (entry = readdir(tasks))) {
		int64_t arg[6];

		if (!isdigit((unsigned char)*entry->d_name))
			continue;
		left--;
		if (proc_syscall_read(root, pid, atoll(entry->d_name), &call) || call.running ||
		    call.nr < 0)
			continue;
		memcpy(arg, call.arg, sizeof(arg));
		found = syscall_fd(call.nr, false, arg) == fd ||
			syscall_fd_to(call.nr, false, arg) == fd;
	}
	if (tasks)
		closedir(tasks);
	return found;
}

struct end_users end_users_find(const char *root, int64_t holder, int fd, const char *link,
				uint32_t mode_bits)
{
	struct family family = {.root = root};
	struct end_users users = {.oldest = holder};
	int64_t having[END_FAMILY_MAX];
	uint64_t oldest_ticks = UINT64_MAX;
	struct proc_stat stat;

	family_add(&family, holder);
	for (size_t i = 0; i < family.count; i++) {
		int64_t pid = family.pids[i];

		if (!end_is_had(root, pid, fd, link, mode_bits))
			continue;
		having[users.count++] = pid;
		children_add(&family, pid);
		if (proc_stat_read(root, 0, pid, &stat))
			continue;
		family_add(&family, stat.ppid);
		children_add(&family, stat.ppid);
		if (stat.start_ticks < oldest_ticks) {
			oldest_ticks = stat.start_ticks;
			users.oldest = pid;
		}
	}
	for (size_t i = 0; users.count > 1 && i < users.count && !users.in_call; i++)
		if (is_in_call(root, having[i], fd))
			users.in_call = having[i];
	return users;
}
