/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/container_monitor.h"
#include "proc/proc.h"

#include <stdio.h>
#include <string.h>

#define ANCESTORS_MAX 64 /* limit of ancestors that are searched */
#define ARGUMENTS_BYTES 4096
#define MONITOR "conmon"

/* The argument that follows an option, which has two names; NULL: there is none. */
static const char *option_find(const char *arguments, size_t length, const char *brief,
			       const char *full)
{
	const char *end = arguments + length, *at = arguments, *next;

	for (; at < end; at = next) {
		next = at + strnlen(at, (size_t)(end - at)) + 1;
		if (next < end && (!strcmp(at, brief) || !strcmp(at, full)))
			return next;
	}
	return NULL;
}

bool container_monitor_parse(const char *arguments, size_t length, const char *id, char *name,
			     size_t size)
{
	const char *found;

	/* the last argument may be cut */
	while (length && arguments[length - 1])
		length--;
	found = option_find(arguments, length, "-c", "--cid");
	if (!found || strcmp(found, id) != 0)
		return false;
	found = option_find(arguments, length, "-n", "--name");
	return found && *found && (size_t)snprintf(name, size, "%s", found) < size;
}

bool container_monitor_name(const char *proc_root, int64_t pid, const char *id, char *name,
			    size_t size)
{
	char arguments[ARGUMENTS_BYTES];
	struct proc_stat stat;
	bool found = false;
	ssize_t length;

	for (int i = 0; i < ANCESTORS_MAX && pid > 0; i++, pid = stat.ppid) {
		if (proc_stat_read(proc_root, 0, pid, &stat))
			break;
		if (strcmp(stat.comm, MONITOR) != 0)
			continue;
		length = proc_file_read(proc_root, 0, pid, "cmdline", arguments, sizeof(arguments));
		/* the outermost monitor wins: a process in the container may claim to be one,
		 * too */
		if (length > 0)
			found |= container_monitor_parse(arguments, (size_t)length, id, name, size);
	}
	return found;
}
