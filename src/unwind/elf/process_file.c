/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/elf/process_file.h"
#include "keeper/avoid.h"
#include "proc/proc.h"
#include "keeper/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/types.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

/* include/uapi/linux/openat2.h, which distributions of 2019 lack */
#ifndef __NR_openat2
#define __NR_openat2 437
#endif
#define RESOLVE_NO_MAGICLINKS_BIT 0x02
#define RESOLVE_IN_ROOT_BIT 0x10

struct how {
	__u64 flags, mode, resolve;
};

/* File systems that the kernel makes up: reading may do something (/proc/kmsg is emptied), wait, or
 * show what is not meant for a user who has it mapped in a mount namespace of his own. From
 * include/uapi/linux/magic.h and, where that lacks one, the file systems' sources. */
static const uint32_t file_systems_refused[] = {
	0x00009fa0, /* proc */
	0x62656572, /* sysfs */
	0x74726163, /* tracefs */
	0x64626720, /* debugfs */
	0x73636673, /* securityfs */
	0x0027e0eb, /* cgroup */
	0x63677270, /* cgroup2 */
	0xcafe4a11, /* bpf */
	0x62656570, /* configfs */
	0x6165676c, /* pstore */
	0xde5e81e4, /* efivarfs */
	0xf97cff8c, /* selinuxfs */
	0x43415d53, /* smackfs */
	0x5a3c69f0, /* apparmorfs */
	0x00001cd1, /* devpts */
	0x19800202, /* mqueue */
	0x42494e4d, /* binfmt_misc */
	0x07655821, /* resctrl */
	0x65735543, /* fusectl */
	0x6e667364, /* nfsd */
	0x67596969, /* rpc_pipefs */
	0xabba1974, /* xenfs */
	0x6e736673, /* nsfs */
};

static bool is_plain(int fd)
{
	struct stat file;
	struct statfs system;

	if (fstat(fd, &file) || !S_ISREG(file.st_mode) || fstatfs(fd, &system))
		return false;
	for (size_t i = 0; i < sizeof(file_systems_refused) / sizeof(file_systems_refused[0]); i++)
		if ((uint32_t)system.f_type == file_systems_refused[i])
			return false;
	return true;
}

/* Opens for reading the file of a descriptor that only names it (O_PATH). Takes the descriptor
 * over. */
static int plain_open(int named)
{
	char path[64];
	int fd = -EINVAL;

	if (named < 0)
		return named;
	if (keeper_avoids_descriptor(named)) {
		fd = -ETIMEDOUT;
	} else if (is_plain(named)) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", named);
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		fd = fd < 0 ? -errno : fd;
	}
	close(named);
	return fd;
}

/* Opens path below root, as name_within() does, with O_PATH: the descriptor only names the file.
 * Opens one directory after the other, so that no link leads elsewhere, also before Linux 5.6.
 * Takes root over. */
static int name_without_links(int root, const char *path)
{
	int at = root, next;

	for (;;) {
		size_t length = strcspn(path, "/");
		char part[NAME_MAX + 1];
		struct stat file;

		if (length >= sizeof(part)) {
			close(at);
			return -ENAMETOOLONG;
		}
		memcpy(part, path, length);
		part[length] = '\0';
		next = openat(at, part, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		next = next < 0 ? -errno : next;
		close(at);
		if (next >= 0 && !fstat(next, &file) && S_ISLNK(file.st_mode)) {
			close(next);
			return -ELOOP;
		}
		path += length;
		if (next < 0 || !*path)
			return next;
		path++;
		at = next;
	}
}

/* Opens path below root (O_PATH). Links lead to where they would lead the process. */
static int name_within(int root, const char *path)
{
	struct how how = {.flags = O_PATH | O_CLOEXEC,
			  .resolve = RESOLVE_IN_ROOT_BIT | RESOLVE_NO_MAGICLINKS_BIT};
	long fd = syscall(__NR_openat2, root, path, &how, sizeof(how));

	/* before Linux 5.6: only the last part is known to be no link */
	if (fd < 0 && (errno == ENOSYS || errno == EPERM))
		fd = openat(root, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	fd = fd < 0 ? -errno : fd;
	close(root);
	return (int)fd;
}

bool process_shares(const char *proc_root, int64_t tid, const char *kind)
{
	struct stat own, its;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
	if (stat(path, &own))
		return false;
	snprintf(path, sizeof(path), "%s/%lld/ns/%s", proc_root, (long long)tid, kind);
	return !stat(path, &its) && own.st_ino == its.st_ino && own.st_dev == its.st_dev;
}

int process_file_open(const char *proc_root, int64_t tid, const char *path, bool plain)
{
	char directory[PATH_MAX];
	int root;

	snprintf(directory, sizeof(directory), "/%s", path);
	if (avoids_process(tid) || avoids_file(directory) ||
	    (!process_shares(proc_root, tid, "user") && keeper_avoids_user_mounts()))
		return -ETIMEDOUT;
	snprintf(directory, sizeof(directory), "%s/%lld/root", proc_root, (long long)tid);
	root = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	return plain_open(plain ? name_without_links(root, path) : name_within(root, path));
}

int process_link_open(int directory, const char *link)
{
	int named = openat(directory, link, O_PATH | O_CLOEXEC);

	return plain_open(named < 0 ? -errno : named);
}

bool process_has_root(const char *proc_root, int64_t tid)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/%lld/root", proc_root, (long long)tid);
	return !access(path, F_OK);
}

int lines_each(int fd, uint64_t most, lines_callback *take, void *of)
{
	char text[16384];
	size_t held = 0;
	ssize_t got;

	for (uint64_t total = 0; total < most; total += (uint64_t)got) {
		char *line = text, *end;

		got = read(fd, text + held, sizeof(text) - 1 - held);
		if (got <= 0)
			return got ? -errno : 0;
		held += (size_t)got;
		for (; (end = memchr(line, '\n', (size_t)(text + held - line))); line = end + 1) {
			*end = '\0';
			take(of, line);
		}
		held -= (size_t)(line - text);
		if (held == sizeof(text) - 1)
			held = 0;
		memmove(text, line, held);
	}
	return 0;
}

/* The owner of /proc/PID is root where the process has changed its ids (not dumpable). */
int64_t process_user(const char *proc_root, int64_t tid)
{
	int64_t uid, tgid;

	return proc_ids_read(proc_root, tid, &uid, &tgid) ? -1 : uid;
}

int64_t thread_inner_tid(const char *proc_root, int64_t tid)
{
	int64_t pid, inner;
	int err = proc_namespace_ids_read(proc_root, 0, tid, &pid, &inner);

	/* status has no such ids before 4.1 */
	return !err ? inner : err == -EINVAL ? tid : -1;
}
