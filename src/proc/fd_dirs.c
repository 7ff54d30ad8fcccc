/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/fd_dirs.h"
#include "keeper/avoid.h"
#include "base/descriptors.h"
#include "base/index.h"
#include "proc/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define IDLE_NS 1000000000ll /* age of the last use after which another process may take a slot */

static void dir_close(struct fd_dir *dir)
{
	if (dir->pid)
		close(dir->fd);
	*dir = (struct fd_dir){0};
}

static void link_close(struct fd_dirs *dirs, struct fd_link *link)
{
	if (link->link) {
		close(link->link);
		dirs->links_open--;
	}
	*link = (struct fd_link){0};
}

void fd_dirs_sweep(struct fd_dirs *dirs, int64_t now_ns, int64_t idle_ns)
{
	for (int i = 0; i < FD_DIRS_MAX; i++)
		if (now_ns - dirs->dirs[i].used_ns >= idle_ns)
			dir_close(&dirs->dirs[i]);
	for (int i = 0; i < FD_LINKS_MAX && dirs->links_open; i++)
		if (now_ns - dirs->links[i].used_ns >= idle_ns)
			link_close(dirs, &dirs->links[i]);
}

/* The descriptor's link, which is opened when it is read for the second time. NULL: its slot is
 * taken, or no more links can be open. It always leads to the descriptor's present file, but of
 * this process alone: a later process with the same pid has other links. */
static struct fd_link *link_find(struct fd_dirs *dirs, const struct fd_dir *dir, int fd,
				 const char *name, int64_t now_ns)
{
	struct fd_link *link =
		&dirs->links[hash_u64((uint64_t)dir->pid << 32 | (uint32_t)fd) % FD_LINKS_MAX];
	int opened;

	if (link->pid != dir->pid || link->fd != fd) {
		if (now_ns - link->used_ns < IDLE_NS)
			return NULL;
		link_close(dirs, link);
		*link = (struct fd_link){.pid = dir->pid, .fd = fd, .used_ns = now_ns};
		return NULL;
	}
	link->used_ns = now_ns;
	if (link->link)
		return link;
	if (!dirs->links_open_max)
		dirs->links_open_max = (int)descriptors_share(FD_LINKS_MAX, 4);
	if (dirs->links_open >= dirs->links_open_max)
		return NULL;
	opened = openat(dir->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (opened < 0)
		return NULL;
	link->link = opened;
	dirs->links_open++;
	return link;
}

static ssize_t dir_link_read(struct fd_dirs *dirs, const struct fd_dir *dir, int fd, int64_t now_ns,
			     char *target, size_t size)
{
	struct fd_link *link;
	ssize_t length;
	char name[16];

	snprintf(name, sizeof(name), "%d", fd);
	link = link_find(dirs, dir, fd, name, now_ns);
	if (link) {
		length = readlinkat(link->link, "", target, size);
		if (length >= 0)
			return length;
		link_close(dirs, link);
	}
	return readlinkat(dir->fd, name, target, size);
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

ssize_t fd_link_read(struct fd_dirs *dirs, const char *root, int64_t pid, int64_t tid, bool shared,
		     int fd, int64_t now_ns, char *target, size_t size)
{
	struct fd_dir *dir = shared ? dir_find(dirs, root, pid, now_ns) : NULL;
	ssize_t length = -ESRCH;
	char name[32];

	if (dir) {
		dir->used_ns = now_ns;
		length = dir_link_read(dirs, dir, fd, now_ns, target, size - 1);
		if (length >= 0) {
			target[length] = '\0';
			return length;
		}
		/* the directory is of an earlier process with this pid, or the first thread has
		 * ended */
		dir_close(dir);
	}
	snprintf(name, sizeof(name), "fd/%d", fd);
	return proc_link_read(root, pid, tid, name, target, size);
}
