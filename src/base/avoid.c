/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/avoid.h"
#include "base/index.h"
#include "base/memory.h"
#include "base/text.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAMED_MAX 8 /* limit of names in the footer; the others are only counted */

/* Words of the footer for one kind, processes or files. */
struct reported {
	struct text text;
	size_t count;
};

static struct index ids; /* avoided processes and their threads */
static char *directories[AVOID_FILES_MAX];
static struct reported processes, files;
static bool users;
static _Atomic uint64_t own_count, *requested_count = &own_count;

static void reported_add(struct reported *reported, const char *name, const char *why)
{
	reported->count++;
	if (reported->count <= NAMED_MAX)
		text_add_format(&reported->text, "%s%s (%s)", reported->count > 1 ? ", " : "", name,
				why);
	else if (reported->count == NAMED_MAX + 1)
		text_add_string(&reported->text, ", ...");
}

/* The process of a thread, found by file names alone: a read of /proc/TID/status may not end. */
static int64_t process_of(int64_t tid)
{
	char path[64];
	struct dirent *entry;
	int64_t found = 0;
	DIR *proc = opendir("/proc");

	while (proc && !found && (entry = readdir(proc))) {
		long long pid = strtoll(entry->d_name, NULL, 10);

		snprintf(path, sizeof(path), "/proc/%lld/task/%lld", pid, (long long)tid);
		if (pid > 0 && !access(path, F_OK))
			found = pid;
	}
	if (proc)
		closedir(proc);
	return found ? found : tid;
}

bool avoid_process(int64_t id, const char *why)
{
	int64_t pid = process_of(id);
	char path[64], name[24];
	struct dirent *entry;
	bool added;
	DIR *tasks;

	index_put(&ids, (uint64_t)pid, &added);
	if (!added)
		return false;
	snprintf(name, sizeof(name), "%lld", (long long)pid);
	reported_add(&processes, name, why);
	snprintf(path, sizeof(path), "/proc/%lld/task", (long long)pid);
	tasks = opendir(path);
	while (tasks && (entry = readdir(tasks)))
		if (entry->d_name[0] != '.')
			index_put(&ids, strtoull(entry->d_name, NULL, 10), NULL);
	if (tasks)
		closedir(tasks);
	return true;
}

bool avoid_files(const char *directory, const char *why)
{
	if (avoids_file(directory))
		return false;
	/* a user with many such files could go on forever: then no file is opened any more */
	if (files.count == AVOID_FILES_MAX - 1) {
		directory = "/";
		why = "too many files of which looks do not end";
	}
	directories[files.count] = memory_text(directory, strlen(directory));
	reported_add(&files, directory, why);
	return true;
}

void avoid_users(void)
{
	users = true;
}

void avoid_users_requested(bool begins)
{
	/* the count may be odd after a worker that was given up */
	*requested_count = (*requested_count | 1) + !begins;
}

void avoid_users_count(_Atomic uint64_t *count)
{
	requested_count = count;
}

bool avoids_process(int64_t id)
{
	return processes.count && index_find(&ids, (uint64_t)id);
}

bool avoids_file(const char *path)
{
	for (size_t i = 0; i < files.count; i++) {
		size_t length = strlen(directories[i]);

		if (!strncmp(path, directories[i], length) &&
		    (!path[length] || path[length] == '/' || directories[i][length - 1] == '/'))
			return true;
	}
	return false;
}

bool avoids_users(void)
{
	return users;
}

static const char *reported_text(const struct reported *reported, size_t *count)
{
	*count = reported->count;
	return reported->count ? text_string(&reported->text) : NULL;
}

const char *avoid_processes_text(size_t *count)
{
	return reported_text(&processes, count);
}

const char *avoid_files_text(size_t *count)
{
	return reported_text(&files, count);
}
