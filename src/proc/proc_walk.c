/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/proc.h"
#include "base/avoid.h"
#include "base/memory.h"
#include "base/text.h"
#include "sample/filter/process_name.h"
#include "sample/script.h"

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

/* Links of the directory task: one for each thread, "." and ".." (proc_task_getattr() of
 * fs/proc/base.c). */
#define SINGLE_THREAD_LINKS 3
#define COMM_BYTES 65 /* of a kernel worker, which /proc shows with its work queue */

/* Parses a text that is a decimal id, 1 to INT_MAX; 0 for anything else. */
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
	int result; /* value that visit returned, separate from errors of reading a process */
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

	if (avoids_process(pid))
		return 0;
	walk->pid = pid;
	snprintf(path, sizeof(path), "%lld/task", (long long)pid);
	if (fstatat(fd, path, &task, 0))
		return 0;
	/* a single thread need not be listed */
	if (task.st_nlink == SINGLE_THREAD_LINKS)
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

/* A part of the list that processes are chosen by. */
struct process_part {
	char *text;
	int64_t id; /* 0: the text is a pattern */
	bool found;
};

struct process_walk {
	const char *root;
	int64_t own_pid;
	struct process_part *parts;
	size_t count, capacity, pattern_count;
	struct pid_list list;
};

/* What names are compared with. exe and script: those of any thread that lives, as a first thread
 * that has ended has none. */
struct process_texts {
	const char *root;
	int64_t pid;
	char comm[COMM_BYTES], exe[PATH_MAX], cmdline[PROC_CMDLINE_BYTES];
	const char *script; /* a part of cmdline; NULL: none */
};

/* Reads the texts of a thread. 1 if it has a program; 0: it has ended, or is the kernel's. */
static int texts_read(void *to, int64_t tid, int fd)
{
	struct process_texts *texts = to;
	size_t length;

	(void)fd;
	if (proc_link_read(texts->root, texts->pid, tid, "exe", texts->exe, sizeof(texts->exe)) <=
	    0)
		return 0;
	proc_cmdline_read(texts->root, texts->pid, tid, texts->cmdline);
	texts->script = process_script(texts->cmdline, &length);
	if (texts->script)
		texts->cmdline[texts->script - texts->cmdline + (ptrdiff_t)length] = '\0';
	return 1;
}

/* Reads the texts of a process; those that can't be read are empty. */
static void process_texts_read(struct process_texts *texts, int proc_fd)
{
	ssize_t length = proc_file_read(texts->root, 0, texts->pid, "comm", texts->comm,
					sizeof(texts->comm));
	struct stat task;
	char path[32];

	texts->comm[length > 0 ? strcspn(texts->comm, "\n") : 0] = '\0';
	*texts->exe = *texts->cmdline = '\0';
	if (texts_read(texts, texts->pid, proc_fd))
		return;
	snprintf(path, sizeof(path), "%lld/task", (long long)texts->pid);
	if (!fstatat(proc_fd, path, &task, 0) && task.st_nlink != SINGLE_THREAD_LINKS)
		ids_walk(proc_fd, path, texts_read, texts);
}

static const char *text_known(const char *text)
{
	return *text ? text : NULL;
}

static int patterns_visit(void *to, int64_t pid, int fd)
{
	struct process_walk *walk = to;
	struct process_texts texts = {.root = walk->root, .pid = pid};
	bool matches = false;

	if (pid == walk->own_pid)
		return 0;
	process_texts_read(&texts, fd);
	for (size_t i = 0; i < walk->count; i++) {
		struct process_part *part = &walk->parts[i];

		if (part->id || !*part->text ||
		    !process_name_matches(part->text, text_known(texts.comm), text_known(texts.exe),
					  texts.script))
			continue;
		part->found = matches = true;
	}
	if (matches && !pid_is_listed(&walk->list, pid))
		pid_add(&walk->list, pid);
	return 0;
}

static void part_add(struct process_walk *walk, const char *text)
{
	struct process_part part = {.text = memory_text(text, strlen(text))};
	int64_t uid, tgid;

	walk->parts =
		memory_grow(walk->parts, &walk->capacity, walk->count + 1, sizeof(*walk->parts));
	if (*text && !text[strspn(text, "0123456789")]) {
		part.id = id_parse(text, strlen(text));
		/* an avoided process, which must not be looked at, existed when it was added to the
		 * avoided ones */
		part.found =
			part.id && part.id != walk->own_pid &&
			(avoids_process(part.id) ||
			 (!proc_ids_read(walk->root, part.id, &uid, &tgid) && tgid == part.id));
		if (part.found && !pid_is_listed(&walk->list, part.id))
			pid_add(&walk->list, part.id);
		part.id = part.id ? part.id : -1;
	} else {
		walk->pattern_count++;
	}
	walk->parts[walk->count++] = part;
}

int proc_pids_find(const char *root, const char *text, int64_t **pids, size_t *count,
		   struct text *missing)
{
	struct process_walk walk = {.root = root, .own_pid = proc_own_pid(root)};
	struct text name = {0};
	int err = 0;

	while (text_next_name(&name, &text))
		part_add(&walk, text_string(&name));
	text_done(&name);
	if (walk.pattern_count)
		err = ids_walk(AT_FDCWD, root, patterns_visit, &walk);
	for (size_t i = 0; i < walk.count; i++) {
		if (missing && !err && !walk.parts[i].found)
			text_add_format(missing, "%s%s", missing->length ? "," : "",
					walk.parts[i].text);
		free(walk.parts[i].text);
	}
	if (!err && walk.list.count) {
		*pids = memory_resize(*pids, *count + walk.list.count, sizeof(**pids));
		memcpy(*pids + *count, walk.list.pids, walk.list.count * sizeof(**pids));
		*count += walk.list.count;
	}
	free(walk.list.pids);
	free(walk.parts);
	return err;
}

bool proc_fd_is(const char *root, int64_t pid, int64_t tid, int fd, const char *link)
{
	char name[32], target[PATH_MAX];

	snprintf(name, sizeof(name), "fd/%d", fd);
	return proc_link_read(root, pid, tid, name, target, sizeof(target)) > 0 &&
	       !strcmp(target, link);
}

DIR *proc_dir_open(const char *root, int64_t pid, const char *name)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%lld/%s", root, (long long)pid, name);
	return opendir(path);
}

int64_t proc_dir_next(DIR *dir)
{
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (isdigit((unsigned char)*entry->d_name))
			return atoll(entry->d_name);
	return -1;
}
