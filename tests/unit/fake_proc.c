/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fake_proc.h"

#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void must(int holds, const char *what)
{
	if (holds)
		return;
	perror(what);
	abort();
}

void fake_proc_init(struct fake_proc *proc)
{
	strcpy(proc->root, "/tmp/tsnap-test-proc-XXXXXX");
	must(mkdtemp(proc->root) != NULL, "mkdtemp");
}

static int entry_remove(const char *path, const struct stat *stat, int type, struct FTW *at)
{
	(void)stat, (void)type, (void)at;
	return remove(path);
}

void fake_proc_done(struct fake_proc *proc)
{
	must(!nftw(proc->root, entry_remove, 16, FTW_DEPTH | FTW_PHYS), proc->root);
}

static void path_make(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
}

static void path_put(char *path, const char *name, const char *text)
{
	FILE *file;

	path_make(path);
	unlink(path);
	if (!strcmp(name, "exe") || !strcmp(name, "cwd") || !strncmp(name, "fd/", 3) ||
	    !strncmp(name, "ns/", 3)) {
		must(!symlink(text, path), path);
		return;
	}
	file = fopen(path, "w");
	must(file && fputs(text, file) >= 0 && !fclose(file), path);
}

void fake_proc_put(const struct fake_proc *proc, int pid, int tid, const char *name,
		   const char *text)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%d/task/%d/%s", proc->root, pid, tid, name);
	path_put(path, name, text);
}

void fake_proc_put_process(const struct fake_proc *proc, int pid, const char *name,
			   const char *text)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%d/%s", proc->root, pid, name);
	path_put(path, name, text);
}

static void bytes_put(const struct fake_proc *proc, int pid, int tid, const char *name,
		      unsigned long offset, const void *bytes, size_t size)
{
	char path[PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%d/task/%d/%s", proc->root, pid, tid, name);
	path_make(path);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	must(fd >= 0 && pwrite(fd, bytes, size, (off_t)offset) == (ssize_t)size && !close(fd),
	     path);
}

void fake_proc_put_page(const struct fake_proc *proc, int pid, int tid, unsigned long address,
			const void *bytes, size_t size)
{
	unsigned long page_bytes = (unsigned long)sysconf(_SC_PAGESIZE);
	const unsigned long long present = 1ull << 63;
	char page[page_bytes];

	memset(page, 0, sizeof(page));
	memcpy(page + address % page_bytes, bytes, size);
	bytes_put(proc, pid, tid, "mem", address - address % page_bytes, page, sizeof(page));
	bytes_put(proc, pid, tid, "pagemap", address / page_bytes * sizeof(present), &present,
		  sizeof(present));
}

void fake_proc_put_stat(const struct fake_proc *proc, int pid, int tid, int ppid)
{
	char line[512];
	int length = snprintf(line, sizeof(line), "%d (x) S %d", tid, ppid);

	for (int field = 5; field <= 52; field++)
		length += snprintf(line + length, sizeof(line) - length, " 0");
	fake_proc_put(proc, pid, tid, "stat", line);
}

void fake_proc_drop(const struct fake_proc *proc, int pid, int tid)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%d/task/%d", proc->root, pid, tid);
	must(!nftw(path, entry_remove, 16, FTW_DEPTH | FTW_PHYS), path);
}
