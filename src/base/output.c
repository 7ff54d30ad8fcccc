/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/output.h"
#include "base/clock.h"
#include "base/file_rights.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/signals.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#define PAGE_WAIT_MS 1000 /* longest wait for the reader after SIGTERM */
#define ALL_WAIT_NS (5 * NS_PER_SECOND)

/* Removes the bytes of a half line from a file: a line that a full disk cut in half is worse than
 * none. */
static void output_trim(int fd, size_t half_line)
{
	struct stat stat;
	off_t end = lseek(fd, 0, SEEK_CUR);

	if (!half_line || fstat(fd, &stat) || !S_ISREG(stat.st_mode) || end != stat.st_size)
		return;
	if (!ftruncate(fd, end - (off_t)half_line))
		lseek(fd, 0, SEEK_END);
}

static int wait_ms(int64_t terminated_ns)
{
	int64_t left_ms = (terminated_ns + ALL_WAIT_NS - clock_monotonic_ns()) / NS_PER_MS;

	return left_ms < 0 ? 0 : left_ms < PAGE_WAIT_MS ? (int)left_ms : PAGE_WAIT_MS;
}

/* Writes like write(2); after SIGTERM it waits until a pipe has space, and writes only what the
 * pipe takes at once. */
static ssize_t some_write(int fd, const char *bytes, size_t length)
{
	struct pollfd wait = {.fd = fd, .events = POLLOUT};
	int64_t terminated_ns = signals_terminated_ns();
	int ready;

	if (!terminated_ns)
		return write(fd, bytes, length);
	ready = poll(&wait, 1, wait_ms(terminated_ns));
	if (!ready)
		errno = OUTPUT_UNREAD;
	return ready > 0 ? write(fd, bytes, length < PIPE_BUF ? length : PIPE_BUF) : -1;
}

int output_write(int fd, const char *bytes, size_t length)
{
	size_t done = 0, half_line = 0;

	while (done < length) {
		ssize_t written = some_write(fd, bytes + done, length - done);
		int err = errno;

		if (written >= 0) {
			done += (size_t)written;
		} else if (err == EAGAIN) {
			/* the descriptor is non-blocking: a process that shares it made it so */
			struct pollfd wait = {.fd = fd, .events = POLLOUT};

			poll(&wait, 1, -1);
		} else if (err != EINTR) {
			while (half_line < done && bytes[done - half_line - 1] != '\n')
				half_line++;
			output_trim(fd, half_line);
			return -err;
		}
	}
	return 0;
}

bool output_is_ready(int fd, size_t length)
{
	struct stat stat;
	int capacity, unread;

	if (!fstat(fd, &stat) &&
	    (S_ISREG(stat.st_mode) || (S_ISCHR(stat.st_mode) && !isatty(fd)))) /* /dev/null */
		return true;
	/* the capacity of a pipe is in memory pages, which unread bytes may fill only in part */
	capacity = fcntl(fd, F_GETPIPE_SZ);
	return capacity > 0 && length <= (size_t)capacity && !ioctl(fd, FIONREAD, &unread) &&
	       !unread;
}

void output_complain(const char *words)
{
	struct text out = {0};

	progress_end();
	progress_sampling_end();
	while (*words) {
		struct text line = {0};
		size_t length = strcspn(words, "\n");

		text_add(&line, words, length);
		text_add_string(&out, "tsnap: ");
		text_add_printable(&out, text_string(&line));
		text_add_char(&out, '\n');
		text_done(&line);
		words += length + (words[length] == '\n');
	}
	output_write(STDERR_FILENO, text_string(&out), out.length);
	text_done(&out);
}

#define LINKS_MAX 40 /* the kernel's own limit */
#define BESIDE_TRIES 16

/* Directory and name of a file that exists or would be made, after all links on the way were
 * followed. */
struct location {
	int directory; /* descriptor that only names it (O_PATH) */
	char name[NAME_MAX + 1];
	bool there;
	bool magic; /* a link of /proc to a file without a path (/dev/stdout to a pipe) */
	struct stat file;
};

/* True if another user may have put the file there. A hard link is as good as a link of one's own,
 * but can be of a file of root's. */
static bool is_planted(int directory, const struct stat *file)
{
	struct stat folder;

	if (user_is_trusted(file->st_uid) && file->st_nlink == 1)
		return false;
	return fstat(directory, &folder) || !only_trusted_write(&folder);
}

/* True if a link of /proc leads elsewhere than its text says: pipe:[4711], /memfd:x (deleted). */
static bool is_magic(const struct location *location, const char *target)
{
	struct stat there, named;
	struct statfs system;

	return !fstatfs(location->directory, &system) && system.f_type == PROC_SUPER_MAGIC &&
	       !fstatat(location->directory, location->name, &there, 0) &&
	       (target[0] != '/' || stat(target, &named) || named.st_dev != there.st_dev ||
		named.st_ino != there.st_ino);
}

/* Replaces the link's name, which *rest follows, by the link's target. */
static int link_follow(struct location *location, char **path, char **rest)
{
	char target[PATH_MAX];
	ssize_t length =
		readlinkat(location->directory, location->name, target, sizeof(target) - 1);
	struct text next = {0};

	if (length < 0)
		return -errno;
	target[length] = '\0';
	if (is_planted(location->directory, &location->file))
		return -OUTPUT_PLANTED;
	location->magic = !**rest && is_magic(location, target);
	if (location->magic)
		return 0;
	text_add_format(&next, "%s/%s", target, *rest);
	if (!**rest)
		next.bytes[--next.length] = '\0';
	free(*path);
	*path = *rest = text_take(&next);
	return 0;
}

static int directory_enter(struct location *location, const char *name)
{
	int next = openat(location->directory < 0 ? AT_FDCWD : location->directory, name,
			  O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (next < 0)
		return -errno;
	if (location->directory >= 0)
		close(location->directory);
	location->directory = next;
	return 0;
}

/* Resolves the next name of *rest. 0, or -errno. */
static int location_step(struct location *location, char **path, char **rest, int *links)
{
	size_t length = strcspn(*rest, "/");

	if (length > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(location->name, *rest, length);
	location->name[length] = '\0';
	*rest += length;
	*rest += strspn(*rest, "/");
	location->there =
		!fstatat(location->directory, location->name, &location->file, AT_SYMLINK_NOFOLLOW);
	if (!location->there)
		return errno == ENOENT && !**rest ? 0 : -errno;
	if (!S_ISLNK(location->file.st_mode))
		return **rest ? directory_enter(location, location->name) : 0;
	if (++*links > LINKS_MAX)
		return -ELOOP;
	return link_follow(location, path, rest);
}

static void location_done(struct location *location)
{
	if (location->directory >= 0)
		close(location->directory);
	location->directory = -1;
}

/* Finds the location of a path. 0: the caller releases it with location_done(); or -errno. */
static int location_walk(struct location *location, const char *path)
{
	static char here[] = ".";
	struct text copy = {0};
	char *whole, *rest;
	int err = 0, links = 0;

	*location = (struct location){.directory = -1};
	text_add_string(&copy, path);
	whole = rest = text_take(&copy);
	if (!whole)
		return -ENOENT;
	if (*rest != '/')
		err = directory_enter(location, ".");
	while (!err && *rest && !location->magic) {
		if (*rest == '/') {
			err = directory_enter(location, "/");
			rest += strspn(rest, "/");
			if (!*rest)
				rest = here;
		}
		if (!err)
			err = location_step(location, &whole, &rest, &links);
	}
	if (!err && location->magic &&
	    fstatat(location->directory, location->name, &location->file, 0))
		err = -errno;
	if (err)
		location_done(location);
	free(whole);
	return err;
}

/* Finds the location of a file, as location_walk() does; refuses directories and planted files. */
static int location_find(struct location *location, const char *path)
{
	int err = location_walk(location, path);

	if (err)
		return err;
	if (location->there && S_ISDIR(location->file.st_mode))
		err = -EISDIR;
	else if (location->there && !S_ISREG(location->file.st_mode) && !location->magic &&
		 is_planted(location->directory, &location->file))
		err = -OUTPUT_PLANTED;
	if (err)
		location_done(location);
	return err;
}

/* Opens the file that was found, and no other that somebody has put in its place since. */
static int location_open(const struct location *location, int flags, mode_t mode)
{
	int fd = openat(location->directory, location->name,
			flags | O_CLOEXEC | O_NOCTTY | (location->magic ? 0 : O_NOFOLLOW), mode);
	struct stat opened;

	if (fd < 0)
		return -errno;
	if (!location->there || (!fstat(fd, &opened) && opened.st_ino == location->file.st_ino &&
				 opened.st_dev == location->file.st_dev))
		return fd;
	close(fd);
	return -OUTPUT_PLANTED;
}

struct output_file {
	struct location location;
	struct text beside; /* name of the new file until it is whole; empty: the file itself is
			       written to */
	mode_t mode;
	int fd;
};

/* Makes a new file in the location's directory, and fills its name. A descriptor, or -errno. */
static int beside_create(const struct location *location, struct text *name)
{
	int fd = -1;

	for (int i = 0; fd < 0 && i < BESIDE_TRIES; i++) {
		uint32_t dice;

		if (getrandom(&dice, sizeof(dice), 0) != sizeof(dice))
			return -errno;
		text_clear(name);
		text_add_format(name, "%.200s.%08x", location->name, dice);
		fd = openat(location->directory, name->bytes,
			    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	return fd < 0 ? -errno : fd;
}

/* Permissions of the new file: those of the file that it replaces, if that is owned by this user,
 * else mode less the umask. */
static mode_t mode_of(const struct location *location, mode_t mode)
{
	return location->there && location->file.st_uid == geteuid() ? location->file.st_mode & 0777
								     : mode_masked(mode);
}

static void file_free(struct output_file *file)
{
	location_done(&file->location);
	text_done(&file->beside);
	free(file);
}

struct output_file *output_begin(const char *path, mode_t mode, int *err)
{
	struct output_file *file = memory_get(sizeof(*file));

	*err = location_find(&file->location, path);
	if (*err) {
		free(file);
		return NULL;
	}
	/* a rename as root would replace /dev/null by a regular file */
	if (file->location.there && !S_ISREG(file->location.file.st_mode))
		file->fd = location_open(&file->location, O_WRONLY, 0);
	else
		file->fd = beside_create(&file->location, &file->beside);
	file->mode = mode;
	*err = file->fd < 0 ? file->fd : 0;
	/* what not everybody may read, nobody gets by the directory's setgid bit or default ACL */
	if (!*err && file->beside.length && !(mode & S_IROTH))
		*err = file_rights_set(file->fd, &(struct file_rights){getegid(), 0600});
	if (!*err)
		return file;
	if (file->fd >= 0)
		return output_end(file, *err), NULL;
	file_free(file);
	return NULL;
}

int output_descriptor(const struct output_file *file)
{
	return file->fd;
}

int output_end(struct output_file *file, int err)
{
	int directory = file->location.directory;
	const char *beside = file->beside.length ? text_string(&file->beside) : NULL;

	if (beside && fchmod(file->fd, mode_of(&file->location, file->mode)) && !err)
		err = -errno;
	if (close(file->fd) && !err)
		err = -errno;
	if (beside && !err && renameat(directory, beside, directory, file->location.name))
		err = -errno;
	if (beside && err)
		unlinkat(directory, beside, 0);
	file_free(file);
	return err;
}

int output_replace(const char *path, const char *bytes, size_t length)
{
	int err;
	struct output_file *file = output_begin(path, 0666, &err);

	return file ? output_end(file, output_write(file->fd, bytes, length)) : err;
}

/* Opens a file that grows. flags: O_TRUNC or O_APPEND. A descriptor, or -errno. */
static int grown_open(const char *path, int flags)
{
	struct location location;
	int err = location_find(&location, path), fd;

	if (err)
		return err;
	if (!location.there)
		fd = location_open(&location, O_WRONLY | O_CREAT | O_EXCL | flags, 0666);
	else if (!location.magic && is_planted(location.directory, &location.file))
		fd = -OUTPUT_PLANTED;
	else
		fd = location_open(&location, O_WRONLY | (flags & O_APPEND), 0);
	/* only now is it certain which file that is */
	if (fd >= 0 && location.there && flags & O_TRUNC && S_ISREG(location.file.st_mode) &&
	    ftruncate(fd, 0)) {
		err = -errno;
		close(fd);
		fd = err;
	}
	location_done(&location);
	return fd;
}

int output_create(const char *path)
{
	return grown_open(path, O_TRUNC);
}

int output_append(const char *path, const char *bytes, size_t length)
{
	int fd = grown_open(path, O_APPEND), err;

	if (fd < 0)
		return fd;
	err = output_write(fd, bytes, length);
	close(fd);
	return err;
}

int output_directory(const char *path, mode_t mode)
{
	struct location location;
	int err = location_walk(&location, path), fd;
	struct stat opened;
	bool made;

	if (err)
		return err;
	made = !location.there && !mkdirat(location.directory, location.name, mode);
	if (!location.there && !made && errno != EEXIST)
		fd = -errno;
	else
		fd = location_open(&location, O_RDONLY | O_DIRECTORY, 0);
	location_done(&location);
	if (fd < 0)
		return fd;
	if (fstat(fd, &opened))
		err = -errno;
	else if (!user_is_trusted(opened.st_uid))
		err = -OUTPUT_FOREIGN;
	else if (made)
		err = file_rights_set(fd, &(struct file_rights){getegid(), mode_masked(mode)});
	if (!err)
		return fd;
	close(fd);
	return err;
}

int output_replace_check(const char *path)
{
	struct location location;
	int err = location_find(&location, path);

	if (err)
		return err;
	if (location.there && !S_ISREG(location.file.st_mode))
		err = faccessat(location.directory, location.name, W_OK, 0) ? -errno : 0;
	else
		err = faccessat(location.directory, ".", W_OK | X_OK, 0) ? -errno : 0;
	location_done(&location);
	return err;
}

const char *output_error(int err)
{
	if (err == -OUTPUT_PLANTED)
		return "another user has put it, or a link on the way to it, there";
	if (err == -OUTPUT_FOREIGN)
		return "the directory belongs to another user, who could read and remove what is "
		       "in it: name one of root's or your own (as systemd makes them), or one "
		       "that does not exist";
	if (err == -OUTPUT_UNREAD)
		return "its reader did not take everything in time after SIGTERM; the rest is lost";
	return strerror(-err);
}
