/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/kubelet_names.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define ENTRIES_MAX 16384

/* Opens the directory that process 1 sees at path; if a sandbox refuses that, the directory that
 * this process sees. */
static DIR *directory_open(const char *proc_root, const char *path)
{
	char whole[PATH_MAX];
	DIR *dir;

	snprintf(whole, sizeof(whole), "%s/1/root%s", proc_root, path);
	dir = opendir(whole);
	if (!dir && (errno == EACCES || errno == EPERM))
		dir = opendir(path);
	return dir;
}

/* Finds the entry that ends in `end`, and fills name without that end. False: none, or it is too
 * long. */
static bool entry_find(const char *proc_root, const char *path, const char *end,
		       char name[NAME_MAX + 1])
{
	DIR *dir = directory_open(proc_root, path);
	size_t end_length = strlen(end), length;
	const struct dirent *entry;
	bool found = false;

	for (int i = 0; dir && !found && i < ENTRIES_MAX && (entry = readdir(dir)); i++) {
		length = strlen(entry->d_name);
		found = length > end_length && length <= NAME_MAX &&
			!strcmp(entry->d_name + length - end_length, end);
		if (found) {
			memcpy(name, entry->d_name, length - end_length);
			name[length - end_length] = '\0';
		}
	}
	if (dir)
		closedir(dir);
	return found;
}

static bool name_take(const char *from, char *name, size_t size)
{
	return *from && (size_t)snprintf(name, size, "%s", from) < size;
}

bool kubelet_container_name(const char *proc_root, const char *id, char *name, size_t size)
{
	char end[NAME_MAX + 1], entry[NAME_MAX + 1];
	const char *last;

	if ((size_t)snprintf(end, sizeof(end), "-%s.log", id) >= sizeof(end) ||
	    !entry_find(proc_root, "/var/log/containers", end, entry))
		return false;
	last = strrchr(entry, '_');
	return last && name_take(last + 1, name, size);
}

bool kubelet_pod_name(const char *proc_root, const char *uid, char *name, size_t size)
{
	char end[NAME_MAX + 1], entry[NAME_MAX + 1];
	char *between;

	if ((size_t)snprintf(end, sizeof(end), "_%s", uid) >= sizeof(end) ||
	    !entry_find(proc_root, "/var/log/pods", end, entry))
		return false;
	between = strchr(entry, '_');
	if (!between)
		return false;
	*between = '/';
	return name_take(entry, name, size);
}
