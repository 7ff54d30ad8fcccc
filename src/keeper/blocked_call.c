/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "keeper/blocked_call.h"
#include "base/host_file.h"
#include "keeper/avoid.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WAIT_NAME_SIZE 128
#define LINE_SIZE 256

/* Indexes of a call's arguments that name the process or file that it reads; -1: none; all -1: what
 * it reads can't be found. */
struct call_row {
	long number;
	int pid, fd, path; /* a path is relative to the directory fd, if there is one */
};

/* clang-format off */
static const struct call_row call_rows[] = {
	/*                       pid  fd path */
	{SYS_process_vm_readv,     0, -1, -1},
	{SYS_read,                -1,  0, -1},
	{SYS_pread64,             -1,  0, -1},
	{SYS_getdents64,          -1,  0, -1},
	{SYS_fstat,               -1,  0, -1},
	{SYS_fstatfs,             -1,  0, -1},
	{SYS_close,               -1, -1, -1}, /* the number may be another file's by now */
	{SYS_openat,              -1,  0,  1},
	{437 /* openat2 */,       -1,  0,  1},
	{SYS_newfstatat,          -1,  0,  1},
	{SYS_statx,               -1,  0,  1},
	{SYS_readlinkat,          -1,  0,  1},
	{SYS_faccessat,           -1,  0,  1},
	{439 /* faccessat2 */,    -1,  0,  1},
	{SYS_statfs,              -1, -1,  0},
	{SYS_getxattr,            -1, -1,  0},
#ifdef SYS_open
	{SYS_open,                -1, -1,  0},
	{SYS_stat,                -1, -1,  0},
	{SYS_lstat,               -1, -1,  0},
	{SYS_readlink,            -1, -1,  0},
	{SYS_access,              -1, -1,  0},
#endif
};

/* Prefixes of the kernel function that a thread waits in, and what it waits for then. */
static const struct wait_row {
	const char *function, *why;
} wait_rows[] = {
	{"handle_userfault",     "a page that a userfaultfd holds back"},
	{"request_wait_answer",  "a FUSE server that does not answer"},
	{"fuse_",                "a FUSE server that does not answer"},
	{"rpc_wait_bit",         "an NFS server that does not answer"},
	{"nfs",                  "an NFS server that does not answer"},
	{"folio_wait",           "a page that is not read"},
	{"wait_on_page",         "a page that is not read"},
	{"__lock_page",          "a page that is not read"},
	{"__folio_lock",         "a page that is not read"},
	/* wchan has the caller of the lock's own functions */
	{"mm_access",            "an exec that has not ended"},
	{"do_task_stat",         "an exec that has not ended"},
	{"proc_pid_",            "an exec that has not ended"},
	{"proc_tgid_io",         "an exec that has not ended"},
	{"call_proc_get_link",   "an exec that has not ended"},
	{"lock_trace",           "an exec that has not ended"},
	{"io_schedule",          "a disk that does not answer"},
};
/* clang-format on */

/* Returns NULL for a call that has no row. */
static const struct call_row *row_find(long number)
{
	for (size_t i = 0; i < sizeof(call_rows) / sizeof(call_rows[0]); i++)
		if (call_rows[i].number == number)
			return &call_rows[i];
	return NULL;
}

bool blocked_call_read(pid_t pid, pid_t tid, struct blocked_call *call)
{
	char path[64], line[LINE_SIZE], *at;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/syscall", pid, tid);
	if (host_file_read(path, line, sizeof(line)) <= 0)
		return false;
	call->number = strtol(line, &at, 10);
	if (at == line || call->number < 0) /* "running"; -1: it waits, but in no call */
		return false;
	for (int i = 0; i < 6; i++)
		call->arguments[i] = strtoull(at, &at, 0);
	call->reads = row_find(call->number);
	return true;
}

/* Reads a string from the memory of the process. */
static bool text_copy(pid_t pid, uint64_t address, char text[PATH_MAX])
{
	char path[64];
	ssize_t got;
	int memory;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	memory = open(path, O_RDONLY | O_CLOEXEC);
	if (memory < 0)
		return false;
	/* less, where a page after the string's end does not exist */
	got = pread(memory, text, PATH_MAX, (off_t)address);
	close(memory);
	return got > 0 && memchr(text, '\0', (size_t)got);
}

/* Reads the name of the file that a descriptor of the process refers to; -100 (AT_FDCWD): its
 * working directory. */
static bool descriptor_name(pid_t pid, int fd, char name[PATH_MAX])
{
	char path[64];
	ssize_t length;

	if (fd == AT_FDCWD)
		snprintf(path, sizeof(path), "/proc/%d/cwd", pid);
	else
		snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	length = readlink(path, name, PATH_MAX - 1);
	name[length < 0 ? 0 : length] = '\0';
	return length > 0;
}

/* Finds the path of the file that the call's arguments name. */
static bool path_find(pid_t pid, const struct call_row *row, const uint64_t *arguments,
		      char path[PATH_MAX])
{
	char directory[PATH_MAX] = "", name[PATH_MAX];
	int fd = row->fd < 0 ? AT_FDCWD : (int)arguments[row->fd], own;

	if (row->path < 0)
		return descriptor_name(pid, fd, path);
	if (!text_copy(pid, arguments[row->path], name))
		return false;
	if (sscanf(name, "/proc/self/fd/%d", &own) == 1)
		return descriptor_name(pid, own, path);
	if (name[0] != '/' && !descriptor_name(pid, fd, directory))
		return false;
	return snprintf(path, PATH_MAX, "%s%s%s", directory, name[0] && name[0] != '/' ? "/" : "",
			name) < PATH_MAX;
}

/* Finds the process of a path such as /proc/4711/maps. False: the path is neither of a process nor
 * of a file on a file system that may hang (pipe:[1], /dev/pts/0). */
static bool path_subject(struct blocked_subject *subject)
{
	const char *path = subject->name;
	char *end;

	if (!strncmp(path, "/proc/", 6)) {
		subject->pid = strtoll(path + 6, &end, 10);
		return subject->pid > 0 && *end == '/';
	}
	return path[0] == '/' && strncmp(path, "/dev/", 5) && strncmp(path, "/sys/", 5);
}

/* NULL: the thread waits in another function. */
static const char *why_find(pid_t pid, pid_t tid)
{
	char path[64], function[WAIT_NAME_SIZE];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/wchan", pid, tid);
	if (host_file_read(path, function, sizeof(function)) > 0)
		for (size_t i = 0; i < sizeof(wait_rows) / sizeof(wait_rows[0]); i++)
			if (!strncmp(function, wait_rows[i].function,
				     strlen(wait_rows[i].function)))
				return wait_rows[i].why;
	return NULL;
}

/* True if the call waits for the lock of the memory map. */
static bool reads_memory(const struct call_row *row, const char *path)
{
	const char *name = strrchr(path, '/');

	return row->pid >= 0 || (name && avoid_waits_for_map(name + 1));
}

bool blocked_subject_find(pid_t pid, pid_t tid, const struct blocked_call *call,
			  struct blocked_subject *subject)
{
	const struct call_row *row = row_find(call->number);

	*subject = (struct blocked_subject){.why = why_find(pid, tid)};
	if (!row)
		return false;
	if (row->pid >= 0) {
		subject->pid = (int64_t)call->arguments[row->pid];
	} else if (row->fd < 0 && row->path < 0) {
		snprintf(subject->name, PATH_MAX, "a file that was closed");
		return subject->why;
	} else if (!path_find(pid, row, call->arguments, subject->name) || !path_subject(subject)) {
		return false;
	}
	if (!subject->why)
		subject->why = reads_memory(row, subject->name) ? "its memory map is locked"
								: "it does not answer";
	if (subject->pid)
		snprintf(subject->name, PATH_MAX, "process %lld", (long long)subject->pid);
	return true;
}
