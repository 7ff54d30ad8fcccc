/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/proc.h"
#include "base/index.h"
#include "base/memory.h"
#include "base/text.h"
#include "keeper/avoid.h"
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

#define STAT_BYTES 2048	  /* 52 numbers of up to 20 digits */
#define STATUS_BYTES 4096 /* Tgid and Uid precede the lists that can be long */
#define STATUS_LONG_BYTES \
	16384 /* ids in namespaces come after the user's groups, which mostly are few */
#define SYSCALL_BYTES 512
#define FDINFO_BYTES 262144
#define SCHEDSTAT_BYTES 128

/* Indexes of proc(5)'s fields of stat, which count from 1. */
enum stat_field {
	STAT_PPID = 4,
	STAT_PGRP = 5,
	STAT_FLAGS = 9,
	STAT_UTIME = 14,
	STAT_STIME = 15,
	STAT_STARTTIME = 22,
	STAT_STARTSTACK = 28,
	STAT_KSTKESP = 29,
	STAT_PROCESSOR = 39,
	STAT_POLICY = 41,
	STAT_FIELDS,
};

static int path_build(char path[PATH_MAX], const char *root, int64_t pid, int64_t tid,
		      const char *name)
{
	int length;

	if (avoids_process_file(pid ? pid : tid, name))
		return -ETIMEDOUT;
	if (pid)
		length = snprintf(path, PATH_MAX, "%s/%lld/task/%lld/%s", root, (long long)pid,
				  (long long)tid, name);
	else
		length = snprintf(path, PATH_MAX, "%s/%lld/%s", root, (long long)tid, name);
	return length < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int proc_file_open(const char *root, int64_t pid, int64_t tid, const char *name)
{
	char path[PATH_MAX];
	int fd, err;

	err = path_build(path, root, pid, tid, name);
	if (err)
		return err;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (avoid_waits_for_map(name) && avoids_memory(pid ? pid : tid)) {
		close(fd);
		return -ETIMEDOUT;
	}
	return fd;
}

FILE *proc_file_stream(const char *root, int64_t pid, int64_t tid, const char *name)
{
	int fd = proc_file_open(root, pid, tid, name);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");

	if (!file && fd >= 0)
		close(fd);
	return file;
}

ssize_t proc_file_read(const char *root, int64_t pid, int64_t tid, const char *name, char *bytes,
		       size_t size)
{
	int fd = proc_file_open(root, pid, tid, name), err;
	ssize_t length;

	if (fd < 0)
		return fd;
	length = read(fd, bytes, size - 1);
	err = -errno;
	close(fd);
	if (length < 0)
		return err;
	bytes[length] = '\0';
	return length;
}

ssize_t proc_link_read(const char *root, int64_t pid, int64_t tid, const char *name, char *bytes,
		       size_t size)
{
	char path[PATH_MAX];
	ssize_t length;
	int err;

	err = path_build(path, root, pid, tid, name);
	if (err)
		return err;
	length = readlink(path, bytes, size);
	if (length < 0)
		return -errno;
	if ((size_t)length >= size)
		return -ENAMETOOLONG;
	bytes[length] = '\0';
	return length;
}

int64_t proc_own_pid(const char *root)
{
	char path[PATH_MAX], pid[32];
	ssize_t length;

	snprintf(path, sizeof(path), "%s/self", root);
	length = readlink(path, pid, sizeof(pid) - 1);
	if (length <= 0)
		return getpid();
	pid[length] = '\0';
	return strtoll(pid, NULL, 10);
}

int proc_owner_read(const char *root, int64_t pid, int64_t tid, int64_t *uid)
{
	char path[PATH_MAX];
	struct stat owner;
	int err;

	err = path_build(path, root, pid, tid, "");
	if (err)
		return err;
	if (stat(path, &owner))
		return -errno;
	*uid = owner.st_uid;
	return 0;
}

/* Parses a number of at most 64 bits; a negative number becomes its two's complement. Returns the
 * text after it, or NULL. */
static const char *number_take(const char *at, int base, uint64_t *value)
{
	/* the analyzer does not see that read(2) filled the bytes */
	bool negative = *at == '-'; /* NOLINT(clang-analyzer-core.UndefinedBinaryOperatorResult) */
	char *end;

	at += negative;
	if (!isdigit((unsigned char)*at))
		return NULL;
	errno = 0;
	*value = strtoull(at, &end, base);
	if (errno || end == at)
		return NULL;
	if (negative && *value > INT64_MAX)
		return NULL;
	if (negative)
		*value = -*value;
	return end;
}

int proc_stat_parse(const char *line, struct proc_stat *stat)
{
	uint64_t tid, value[STAT_FIELDS];
	const char *open = number_take(line, 10, &tid);
	/* comm may contain anything, ") R 1" too; the text after it contains no parenthesis */
	const char *close = strrchr(line, ')'), *at;
	size_t length;

	if (!open || open[0] != ' ' || open[1] != '(' || !close || close < open + 2)
		return -EINVAL;
	if (close[1] != ' ' || !isalpha((unsigned char)close[2]))
		return -EINVAL;
	at = close + 3;
	for (int field = STAT_PPID; field < STAT_FIELDS; field++) {
		if (*at != ' ')
			return -EINVAL;
		at = number_take(at + 1, 10, &value[field]);
		if (!at)
			return -EINVAL;
	}
	if (tid > INT_MAX || value[STAT_PPID] > INT_MAX || value[STAT_FLAGS] > UINT32_MAX ||
	    value[STAT_PROCESSOR] > INT_MAX)
		return -EINVAL;

	*stat = (struct proc_stat){
		.tid = tid,
		.ppid = value[STAT_PPID],
		.reaped = value[STAT_PGRP] == UINT64_MAX, /* -1 */
		.state = close[2],
		.flags = value[STAT_FLAGS],
		.start_ticks = value[STAT_STARTTIME],
		.stack_start = value[STAT_STARTSTACK],
		.cpu = value[STAT_PROCESSOR],
		.policy = value[STAT_POLICY],
		.user_ticks = value[STAT_UTIME],
		.system_ticks = value[STAT_STIME],
		.sp = value[STAT_KSTKESP],
	};
	length = close - (open + 2);
	if (length > sizeof(stat->comm) - 1)
		length = sizeof(stat->comm) - 1;
	memcpy(stat->comm, open + 2, length);
	return 0;
}

int proc_stat_read(const char *root, int64_t pid, int64_t tid, struct proc_stat *stat)
{
	char line[STAT_BYTES];
	ssize_t length = proc_file_read(root, pid, tid, "stat", line, sizeof(line));

	return length < 0 ? length : proc_stat_parse(line, stat);
}

ssize_t proc_cmdline_read(const char *root, int64_t pid, int64_t tid,
			  char cmdline[PROC_CMDLINE_BYTES])
{
	ssize_t length = proc_file_read(root, pid, tid, "cmdline", cmdline, PROC_CMDLINE_BYTES);

	while (length > 0 && (cmdline[length - 1] == '\0' || cmdline[length - 1] == ' '))
		length--;
	for (ssize_t i = 0; i < length; i++)
		if (!cmdline[i])
			cmdline[i] = ' ';
	length = length > 0 ? length : 0;
	cmdline[length] = '\0';
	return length;
}

int proc_syscall_parse(const char *line, struct proc_syscall *call)
{
	uint64_t nr, value[8] = {0};
	size_t count = 0;
	const char *at;

	if (!strncmp(line, "running", strlen("running"))) {
		*call = (struct proc_syscall){.running = true, .nr = -1};
		return 0;
	}
	at = number_take(line, 10, &nr);
	while (at && *at == ' ' && count < 8)
		at = number_take(at + 1, 16, &value[count++]);
	if (!at || (*at && *at != '\n'))
		return -EINVAL;

	/* outside a system call only sp and pc follow a negative number: lib/syscall.c,
	 * fs/proc/base.c */
	if ((int64_t)nr < 0 && count == 2) {
		*call = (struct proc_syscall){.nr = -1, .sp = value[0], .pc = value[1]};
		return 0;
	}
	if ((int64_t)nr < 0 || count != 8)
		return -EINVAL;
	*call = (struct proc_syscall){.nr = nr, .sp = value[6], .pc = value[7]};
	memcpy(call->arg, value, sizeof(call->arg));
	return 0;
}

int proc_syscall_read(const char *root, int64_t pid, int64_t tid, struct proc_syscall *call)
{
	char line[SYSCALL_BYTES];
	ssize_t length = proc_file_read(root, pid, tid, "syscall", line, sizeof(line));

	return length < 0 ? length : proc_syscall_parse(line, call);
}

/* Returns the text after a key at the beginning of a line of status, or NULL. The kernel escapes
 * line breaks in Name:, the only line that a thread chooses itself. */
static const char *status_find(const char *status, const char *key)
{
	size_t length = strlen(key);

	while (status && strncmp(status, key, length)) {
		status = strchr(status, '\n');
		if (status)
			status++;
	}
	return status ? status + length : NULL;
}

int proc_ids_parse(const char *status, int64_t *uid, int64_t *tgid)
{
	const char *at = status_find(status, "Tgid:\t");
	uint64_t group, real, effective;

	if (!at || !number_take(at, 10, &group) || group > INT_MAX)
		return -EINVAL;
	at = status_find(status, "Uid:\t");
	at = at ? number_take(at, 10, &real) : NULL;
	if (!at || *at != '\t' || !number_take(at + 1, 10, &effective) || effective > UINT32_MAX)
		return -EINVAL;
	*uid = effective;
	*tgid = group;
	return 0;
}

int proc_ids_read(const char *root, int64_t tid, int64_t *uid, int64_t *tgid)
{
	char status[STATUS_BYTES];
	ssize_t length = proc_file_read(root, 0, tid, "status", status, sizeof(status));

	return length < 0 ? length : proc_ids_parse(status, uid, tgid);
}

int proc_schedstat_parse(const char *line, struct proc_schedstat *sums)
{
	uint64_t value[3];
	const char *at = line;

	for (int i = 0; i < 3; i++) {
		at = number_take(at, 10, &value[i]);
		if (!at || *at != (i < 2 ? ' ' : '\n'))
			return -EINVAL;
		at++;
	}
	*sums = (struct proc_schedstat){value[0], value[1], value[2]};
	return 0;
}

int proc_schedstat_read(const char *root, int64_t pid, int64_t tid, struct proc_schedstat *sums)
{
	char line[SCHEDSTAT_BYTES];
	ssize_t length = proc_file_read(root, pid, tid, "schedstat", line, sizeof(line));

	return length < 0 ? length : proc_schedstat_parse(line, sums);
}

int proc_switches_parse(const char *status, uint64_t *voluntary, uint64_t *involuntary)
{
	const char *at = status_find(status, "voluntary_ctxt_switches:\t");
	uint64_t first, second;

	if (!at || !number_take(at, 10, &first))
		return -EINVAL;
	at = status_find(at, "nonvoluntary_ctxt_switches:\t");
	if (!at || !number_take(at, 10, &second))
		return -EINVAL;
	*voluntary = first;
	*involuntary = second;
	return 0;
}

int proc_switches_read(const char *root, int64_t pid, int64_t tid, uint64_t *voluntary,
		       uint64_t *involuntary)
{
	char status[STATUS_LONG_BYTES];
	ssize_t length = proc_file_read(root, pid, tid, "status", status, sizeof(status));

	return length < 0 ? length : proc_switches_parse(status, voluntary, involuntary);
}

/* Reads the last number of a list such as "4711\t12\t1". 0 or -EINVAL. */
static int number_last(const char *at, int64_t *last)
{
	uint64_t number = 0;

	do {
		at = at ? number_take(at, 10, &number) : NULL;
		if (!at || number > INT_MAX)
			return -EINVAL;
	} while (*at++ == '\t');
	*last = (int64_t)number;
	return 0;
}

int proc_namespace_ids_parse(const char *status, int64_t *namespace_pid, int64_t *namespace_tid)
{
	int64_t pid, tid;

	if (number_last(status_find(status, "NStgid:\t"), &pid) ||
	    number_last(status_find(status, "NSpid:\t"), &tid))
		return -EINVAL;
	*namespace_pid = pid;
	*namespace_tid = tid;
	return 0;
}

int proc_namespace_ids_read(const char *root, int64_t pid, int64_t tid, int64_t *namespace_pid,
			    int64_t *namespace_tid)
{
	char status[STATUS_LONG_BYTES];
	ssize_t length = proc_file_read(root, pid, tid, "status", status, sizeof(status));

	return length < 0 ? length : proc_namespace_ids_parse(status, namespace_pid, namespace_tid);
}

/* Links of the directory task, beside one for each thread: "." and ".." (proc_task_getattr() of
 * fs/proc/base.c). */
#define LINKS_BESIDE 2
#define SINGLE_THREAD_LINKS (LINKS_BESIDE + 1)
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
	struct keyed pids; /* int64_t: ids that were found */
};

static void pid_put(struct process_walk *walk, int64_t pid)
{
	*(int64_t *)keyed_put(&walk->pids, sizeof(pid), (uint64_t)pid, NULL) = pid;
}

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
	if (matches)
		pid_put(walk, pid);
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
		if (part.found)
			pid_put(walk, part.id);
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
	if (!err && walk.pids.count) {
		*pids = memory_resize(*pids, *count + walk.pids.count, sizeof(**pids));
		memcpy(*pids + *count, walk.pids.rows, walk.pids.count * sizeof(**pids));
		*count += walk.pids.count;
	}
	keyed_done(&walk.pids);
	free(walk.parts);
	return err;
}

char *proc_fdinfo_read(const char *root, int64_t pid, int64_t tid, int fd, bool *cut)
{
	static char text[FDINFO_BYTES];
	char name[32];
	ssize_t length;

	snprintf(name, sizeof(name), "fdinfo/%d", fd);
	length = avoids_fdinfo(tid, fd) ? -ETIMEDOUT
					: proc_file_read(root, pid, tid, name, text, sizeof(text));
	if (length < 0)
		*text = '\0';
	if (cut)
		*cut = length == sizeof(text) - 1;
	return text;
}

bool proc_fd_is(const char *root, int64_t pid, int64_t tid, int fd, const char *link)
{
	char name[32], target[PATH_MAX];

	snprintf(name, sizeof(name), "fd/%d", fd);
	return proc_link_read(root, pid, tid, name, target, sizeof(target)) > 0 &&
	       !strcmp(target, link);
}

int64_t proc_thread_count(const char *root, int64_t pid)
{
	char path[PATH_MAX];
	struct stat task;

	snprintf(path, sizeof(path), "%s/%lld/task", root, (long long)pid);
	return stat(path, &task) ? 0 : (int64_t)task.st_nlink - LINKS_BESIDE;
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

void proc_children_walk(const char *root, int64_t pid, int64_t tid,
			bool (*visit)(void *to, int64_t child), void *to)
{
	FILE *children = proc_file_stream(root, pid, tid, "children");
	long long child;

	while (children && fscanf(children, "%lld", &child) == 1 && visit(to, child))
		;
	if (children)
		fclose(children);
}
