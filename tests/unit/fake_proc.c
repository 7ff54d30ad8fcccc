/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "fake_proc.h"

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

void fake_proc_put(const struct fake_proc *proc, int pid, int tid, const char *name,
		   const char *text)
{
	char path[PATH_MAX];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%d/task/%d/%s", proc->root, pid, tid, name);
	path_make(path);
	unlink(path);
	if (!strcmp(name, "exe") || !strncmp(name, "fd/", 3) || !strncmp(name, "ns/", 3)) {
		must(!symlink(text, path), path);
		return;
	}
	file = fopen(path, "w");
	must(file && fputs(text, file) >= 0 && !fclose(file), path);
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
