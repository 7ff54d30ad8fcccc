/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/share_directory.h"
#include "base/text.h"
#include "base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#define ROOT "/sys/fs/bpf"
#define PREFIX "tsnap-"
#define ENTRY_SIZE (sizeof(PREFIX) + SHARE_NAME_MAX)
#define LOOK_NS (NS_PER_SECOND / 50)
/* Time to wait for a tsnap that is just leaving, or for the compile child of one that was
 * killed. */
#define BUSY_NS (2 * NS_PER_SECOND)
#define WAIT_NS (20 * NS_PER_SECOND) /* a compile under emulation takes 16 s */

bool share_name_valid(const char *name)
{
	size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				     "0123456789-_");

	return length && length <= SHARE_NAME_MAX && !name[length];
}

static int root_open(struct error *e)
{
	struct statfs about;
	int fd = open(ROOT, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 && errno == EACCES)
		return error_set(e, EACCES, EXIT_HOST_CANNOT,
				 ROOT " can't be opened by this user: run as root");
	if (fd >= 0 && !fstatfs(fd, &about) && (uint32_t)about.f_type == BPF_FS_MAGIC)
		return fd;
	if (fd >= 0)
		close(fd);
	return error_set(e, ENODEV, EXIT_HOST_CANNOT,
			 "samplers share through a bpf file system at " ROOT
			 ", and none is mounted there: mount -t bpf -o mode=0700 bpf " ROOT);
}

static void entry_name(const char *name, char *entry)
{
	snprintf(entry, ENTRY_SIZE, PREFIX "%s", name);
}

/* Opens the directory of a share. A descriptor, -ENOENT without words, or -errno with e. */
static int entry_open(int root, const char *entry, struct error *e)
{
	struct stat about;
	int fd = openat(root, entry, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd >= 0 && !fstat(fd, &about) && about.st_uid == geteuid() &&
	    (about.st_mode & 07777) == 0700)
		return fd;
	if (fd >= 0)
		close(fd);
	return error_set(e, EPERM, EXIT_FAILED,
			 ROOT "/%s is not a private directory of this user (mode 0700), so others "
			      "may have put things there: use another name, or have it removed",
			 entry);
}

/* True if fd is still the entry: another tsnap may have removed it before it was locked. */
static bool is_linked(int root, const char *entry, int fd)
{
	struct stat held, named;

	return !fstat(fd, &held) && !fstatat(root, entry, &named, AT_SYMLINK_NOFOLLOW) &&
	       held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

static bool is_pin(const char *name)
{
	return !strncmp(name, "map_", 4) || !strncmp(name, "prog_", 5) ||
	       !strncmp(name, "link_", 5);
}

/* Removes the directory, which is held alone, and what tsnap puts in it; first of all meta, which
 * says that it is complete. 1: there was something, 0: there was nothing, -errno: something else is
 * in it. */
static int entry_remove(int root, const char *entry, int fd)
{
	int listing = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = listing < 0 ? NULL : fdopendir(listing);
	struct dirent *pin;
	int any = !unlinkat(fd, "meta", 0);

	any |= !unlinkat(fd, "owner", AT_REMOVEDIR);
	while (dir && (pin = readdir(dir)))
		if (is_pin(pin->d_name))
			any |= !unlinkat(fd, pin->d_name, 0);
	if (dir)
		closedir(dir);
	else if (listing >= 0)
		close(listing);
	return unlinkat(root, entry, AT_REMOVEDIR) ? -errno : any;
}

/* Adds the pids of the holders of the directory or file fd, with commas between. */
static void holders_add(struct text *to, int fd)
{
	FILE *file = fopen("/proc/locks", "re");
	struct stat about;
	char *line = NULL;
	size_t capacity = 0, start = to->length;

	if (fstat(fd, &about))
		about.st_ino = 0;
	while (file && getline(&line, &capacity, file) > 0) {
		unsigned int major_nr, minor_nr;
		unsigned long inode;
		long pid;

		/* "1: FLOCK  ADVISORY  READ 32197 00:27:2656794 0 EOF" */
		if (sscanf(line, "%*d: FLOCK %*s %*s %ld %x:%x:%lu", &pid, &major_nr, &minor_nr,
			   &inode) != 4 ||
		    inode != about.st_ino || makedev(major_nr, minor_nr) != about.st_dev)
			continue;
		text_add_format(to, "%s%ld", to->length > start ? ", " : "", pid);
	}
	free(line);
	if (file)
		fclose(file);
}

static int busy_explain(int fd, const char *name, struct error *e)
{
	struct text holders = {0};

	holders_add(&holders, fd);
	error_set(e, EBUSY, EXIT_FAILED, "'%s' is shared already, by process %s: tsnap --attach %s",
		  name, holders.length ? text_string(&holders) : "of another pid namespace", name);
	text_done(&holders);
	return -EBUSY;
}

/* Tries to make the directory. A descriptor; -EAGAIN: another tsnap came between; -EBUSY: one is in
 * it; or another -errno; the last two with e. */
static int make_try(int root, const char *name, bool *cleared, struct error *e)
{
	char entry[ENTRY_SIZE];
	bool made;
	int fd, result = -EAGAIN;

	entry_name(name, entry);
	made = !mkdirat(root, entry, 0700);
	if (!made && errno != EEXIST)
		return error_set(e, errno, EXIT_HOST_CANNOT, ROOT "/%s can't be made: %s", entry,
				 strerror(errno));
	fd = entry_open(root, entry, e);
	if (fd < 0)
		return fd == -ENOENT ? -EAGAIN : fd;
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		result = busy_explain(fd, name, e);
	} else if (is_linked(root, entry, fd)) {
		if (made)
			return fd;
		/* the directory is not used again: a lock on it says nothing about a new one */
		result = entry_remove(root, entry, fd);
		*cleared = *cleared || result > 0;
		if (result >= 0)
			result = -EAGAIN;
		else
			error_set(e, -result, EXIT_FAILED,
				  ROOT "/%s was left by a tsnap that was killed, and can't be "
				       "removed: %s; is there anything else in it?",
				  entry, strerror(-result));
	}
	close(fd);
	return result;
}

int share_directory_make(struct share_directory *directory, const char *name, bool *cleared,
			 struct error *e)
{
	int64_t end_ns = clock_monotonic_ns() + BUSY_NS;
	int root = root_open(e), fd;

	if (root < 0)
		return root;
	*cleared = false;
	for (;;) {
		fd = make_try(root, name, cleared, e);
		if ((fd != -EAGAIN && fd != -EBUSY) || clock_monotonic_ns() > end_ns)
			break;
		if (clock_sleep_until(clock_monotonic_ns() + LOOK_NS))
			fd = error_set(e, EINTR, EXIT_FAILED, "interrupted by a signal");
		if (fd == -EINTR)
			break;
	}
	if (fd == -EAGAIN)
		error_set(
			e, EAGAIN, EXIT_FAILED,
			"other tsnap processes keep starting and ending as '%s': use another name",
			name);
	if (fd < 0) {
		close(root);
		return fd;
	}
	*directory = (struct share_directory){.root = root, .fd = fd};
	snprintf(directory->name, sizeof(directory->name), "%s", name);
	return 0;
}

int share_directory_open(struct share_directory *directory, struct error *e)
{
	char entry[ENTRY_SIZE];

	entry_name(directory->name, entry);
	/* flock(2) does not promise that nobody comes between */
	if (!flock(directory->fd, LOCK_SH) && is_linked(directory->root, entry, directory->fd))
		return 0;
	return error_set(e, EAGAIN, EXIT_FAILED,
			 "another tsnap has just taken '%s': use another name", directory->name);
}

int share_directory_join(struct share_directory *directory, const char *name, struct error *e)
{
	int64_t end_ns = clock_monotonic_ns() + WAIT_NS;
	int root = root_open(e), fd, result;
	char entry[ENTRY_SIZE];
	bool was_left;

	if (root < 0)
		return root;
	entry_name(name, entry);
	for (;;) {
		fd = entry_open(root, entry, e);
		if (fd < 0) {
			result = fd == -ENOENT ? error_set(e, ENOENT, EXIT_FAILED,
							   "no tsnap shares '%s': tsnap --share %s "
							   "does; tsnap --check lists what is "
							   "shared",
							   name, name)
					       : fd;
			break;
		}
		was_left = !flock(fd, LOCK_EX | LOCK_NB);
		if (!flock(fd, LOCK_SH | LOCK_NB) && is_linked(root, entry, fd)) {
			*directory = (struct share_directory){
				.root = root, .fd = fd, .was_left = was_left};
			snprintf(directory->name, sizeof(directory->name), "%s", name);
			return 0;
		}
		close(fd);
		result = clock_sleep_until(clock_monotonic_ns() + LOOK_NS);
		if (!result && clock_monotonic_ns() > end_ns)
			result = -ETIME;
		if (result) {
			error_set(e, -result, EXIT_FAILED,
				  "the tsnap that is starting to share '%s' is not ready: %s", name,
				  strerror(-result));
			break;
		}
	}
	close(root);
	return result;
}

void share_directory_leave(struct share_directory *directory, bool useless)
{
	char entry[ENTRY_SIZE];

	if (!directory->name[0])
		return;
	entry_name(directory->name, entry);
	if (!(useless && directory->was_left) && !flock(directory->fd, LOCK_EX | LOCK_NB) &&
	    is_linked(directory->root, entry, directory->fd))
		entry_remove(directory->root, entry, directory->fd);
	close(directory->fd);
	close(directory->root);
	*directory = (struct share_directory){.root = -1, .fd = -1};
}

void share_directories_walk(void (*each)(void *to, const char *name, const char *holders), void *to)
{
	struct error unsaid = {0};
	int root = root_open(&unsaid);
	DIR *dir = root < 0 ? NULL : fdopendir(root);
	struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		const char *name = entry->d_name + strlen(PREFIX);
		struct text holders = {0};
		int fd;

		if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) || !share_name_valid(name))
			continue;
		fd = entry_open(root, entry->d_name, &unsaid);
		if (fd < 0)
			continue;
		holders_add(&holders, fd);
		close(fd);
		each(to, name, text_string(&holders));
		text_done(&holders);
	}
	if (dir)
		closedir(dir);
	else if (root >= 0)
		close(root);
	error_done(&unsaid);
}
