/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "lookup/proc.h"
#include "base/memory.h"
#include "sample/expression.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A decimal id that is all of text, 1 to INT_MAX; 0 for anything else. */
static int64_t id_parse(const char *text, size_t length)
{
	int64_t id = 0;

	for (size_t i = 0; i < length; i++) {
		if (!isdigit((unsigned char)text[i]) || id > INT_MAX)
			return 0;
		id = id * 10 + (text[i] - '0');
	}
	return id <= INT_MAX ? id : 0;
}

/* Calls visit(to, id, fd of the directory) for each entry of the directory that is a number. */
static int ids_walk(int at, const char *path, int (*visit)(void *to, int64_t id, int fd), void *to)
{
	int fd = openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int err = 0;

	if (!dir) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	while (!err) {
		int64_t id;

		errno = 0;
		entry = readdir(dir);
		if (!entry) {
			err = -errno;
			break;
		}
		id = id_parse(entry->d_name, strlen(entry->d_name));
		if (id)
			err = visit(to, id, fd);
	}
	closedir(dir);
	return err;
}

struct thread_walk {
	int (*visit)(void *to, int64_t pid, int64_t tid);
	void *to;
	int64_t pid;
	int result; /* of visit: told apart from the errors of reading one process */
};

static int thread_visit(void *to, int64_t tid, int fd)
{
	struct thread_walk *walk = to;

	(void)fd;
	walk->result = walk->visit(walk->to, walk->pid, tid);
	return walk->result;
}

static int process_visit(void *to, int64_t pid, int fd)
{
	struct thread_walk *walk = to;
	struct stat task;
	char path[32];

	walk->pid = pid;
	snprintf(path, sizeof(path), "%lld/task", (long long)pid);
	if (fstatat(fd, path, &task, 0))
		return 0;
	/* a link per thread, "." and ".." (pid_task_getattr() of fs/proc/base.c): no need to list
	 * one */
	if (task.st_nlink == 3)
		return thread_visit(walk, pid, fd);
	ids_walk(fd, path, thread_visit, walk);
	return walk->result;
}

int proc_threads_walk(const char *root, int (*visit)(void *to, int64_t pid, int64_t tid), void *to)
{
	struct thread_walk walk = {.visit = visit, .to = to};

	return ids_walk(AT_FDCWD, root, process_visit, &walk);
}

struct pid_list {
	int64_t *pids;
	size_t count, capacity;
};

static void pid_add(struct pid_list *list, int64_t pid)
{
	list->pids = memory_grow(list->pids, &list->capacity, list->count + 1, sizeof(*list->pids));
	list->pids[list->count++] = pid;
}

static bool pid_is_listed(const struct pid_list *list, int64_t pid)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->pids[i] == pid)
			return true;
	return false;
}

static int ids_find(const char *root, const char *text, struct pid_list *list, char *bad,
		    size_t bad_size)
{
	int64_t own = proc_own_pid(root);

	for (size_t length; *text; text += length + (text[length] == ',')) {
		int64_t id, uid, tgid;

		length = strcspn(text, ",");
		if (!length)
			continue;
		id = id_parse(text, length);
		if (!id || id == own || proc_ids_read(root, id, &uid, &tgid) || tgid != id) {
			snprintf(bad, bad_size, "%.*s", (int)length, text);
			return -ESRCH;
		}
		if (!pid_is_listed(list, id))
			pid_add(list, id);
	}
	return 0;
}

struct pattern_walk {
	const char *root, *pattern;
	int64_t own;
	struct pid_list list;
};

static int pattern_visit(void *to, int64_t pid, int fd)
{
	struct pattern_walk *walk = to;
	char text[PATH_MAX], *slash;
	ssize_t length;

	(void)fd;
	if (pid == walk->own)
		return 0;
	length = proc_file_read(walk->root, 0, pid, "comm", text, sizeof(text));
	if (length > 0 && text[length - 1] == '\n')
		text[length - 1] = '\0';
	if (length > 0 && pattern_matches(walk->pattern, text)) {
		pid_add(&walk->list, pid);
		return 0;
	}
	length = proc_file_read(walk->root, 0, pid, "cmdline", text, sizeof(text));
	if (length <= 0)
		return 0;
	text[strcspn(text, " ")] = '\0';
	slash = strrchr(text, '/');
	if (pattern_matches(walk->pattern, slash ? slash + 1 : text))
		pid_add(&walk->list, pid);
	return 0;
}

static int pattern_find(const char *root, const char *text, struct pid_list *list, char *bad,
			size_t bad_size)
{
	struct pattern_walk walk = {.root = root, .pattern = text, .own = proc_own_pid(root)};
	int err = 0;

	if (*text)
		err = ids_walk(AT_FDCWD, root, pattern_visit, &walk);
	if (!err && !walk.list.count) {
		snprintf(bad, bad_size, "%s", text);
		err = -ENOENT;
	}
	*list = walk.list;
	return err;
}

int proc_pids_find(const char *root, const char *text, int64_t **pids, size_t *count, char *bad,
		   size_t bad_size)
{
	struct pid_list list = {0};
	bool ids = strpbrk(text, "0123456789") && !text[strspn(text, "0123456789,")];
	int err = ids ? ids_find(root, text, &list, bad, bad_size)
		      : pattern_find(root, text, &list, bad, bad_size);

	if (!err && list.count) {
		*pids = memory_resize(*pids, *count + list.count, sizeof(**pids));
		memcpy(*pids + *count, list.pids, list.count * sizeof(**pids));
		*count += list.count;
	}
	free(list.pids);
	return err;
}
