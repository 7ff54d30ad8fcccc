/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/fd_dirs.h"
#include "keeper/avoid.h"
#include "proc/proc.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define IDLE_NS 1000000000ll /* age of the last use after which another process may take a slot */

static void dir_close(struct fd_dir *dir)
{
	if (dir->pid)
		close(dir->fd);
	*dir = (struct fd_dir){0};
}

void fd_dirs_sweep(struct fd_dirs *dirs, int64_t now_ns, int64_t idle_ns)
{
	for (int i = 0; i < FD_DIRS_MAX; i++)
		if (now_ns - dirs->dirs[i].used_ns >= idle_ns)
			dir_close(&dirs->dirs[i]);
}

/* The process's directory. NULL: its slot is taken, or there is no such directory. */
static struct fd_dir *dir_find(struct fd_dirs *dirs, const char *root, int64_t pid, int64_t now_ns)
{
	struct fd_dir *dir = &dirs->dirs[pid % FD_DIRS_MAX];
	char path[PATH_MAX];
	int fd;

	if (dir->pid == pid)
		return dir;
	if ((dir->pid && now_ns - dir->used_ns < IDLE_NS) || avoids_process(pid))
		return NULL;
	snprintf(path, sizeof(path), "%s/%lld/fd", root, (long long)pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	dir_close(dir);
	*dir = (struct fd_dir){.pid = pid, .fd = fd};
	return dir;
}

bool fd_are_shared(int64_t pid, int64_t tid)
{
	return pid == tid || !syscall(SYS_kcmp, pid, tid, KCMP_FILES, 0, 0);
}

bool fd_are_apart(int64_t pid, int64_t tid)
{
	return pid != tid && syscall(SYS_kcmp, pid, tid, KCMP_FILES, 0, 0) > 0;
}

ssize_t fd_link_read(struct fd_dirs *dirs, const char *root, int64_t pid, int64_t tid, bool shared,
		     int fd, int64_t now_ns, char *target, size_t size)
{
	struct fd_dir *dir = shared ? dir_find(dirs, root, pid, now_ns) : NULL;
	ssize_t length;
	char name[32];

	snprintf(name, sizeof(name), "fd/%d", fd);
	if (dir) {
		dir->used_ns = now_ns;
		length = readlinkat(dir->fd, name + strlen("fd/"), target, size - 1);
		if (length >= 0) {
			target[length] = '\0';
			return length;
		}
		/* the directory is of an earlier process with this pid, or the first thread has
		 * ended */
		dir_close(dir);
	}
	return proc_link_read(root, pid, tid, name, target, size);
}
