/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/output_file.h"
#include "base/memory.h"
#include "base/output.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#define LINKS_MAX 40 /* the kernel's own limit */
#define BESIDE_TRIES 16

/* Place of a file that is there or would be, after all links on the way were followed. */
struct place {
	int directory; /* only names it (O_PATH) */
	char name[NAME_MAX + 1];
	bool there;
	bool magic; /* a link of /proc to what has no path (/dev/stdout to a pipe) */
	struct stat file;
};

/* True if another user has put the file into a directory of everybody's (/tmp): the rule of
 * fs.protected_symlinks and fs.protected_fifos, whatever these are set to. */
static bool is_planted(int directory, const struct stat *file)
{
	struct stat folder;

	if (fstat(directory, &folder))
		return true;
	return folder.st_mode & S_ISVTX && folder.st_mode & S_IWOTH && file->st_uid != geteuid() &&
	       file->st_uid != folder.st_uid;
}

/* True if a link of /proc leads elsewhere than its text says: pipe:[4711], /memfd:x (deleted). */
static bool is_magic(const struct place *place, const char *target)
{
	struct stat there, named;
	struct statfs system;

	return !fstatfs(place->directory, &system) && system.f_type == PROC_SUPER_MAGIC &&
	       !fstatat(place->directory, place->name, &there, 0) &&
	       (target[0] != '/' || stat(target, &named) || named.st_dev != there.st_dev ||
		named.st_ino != there.st_ino);
}

/* Puts what the link leads to in the place of its name, which *rest followed. */
static int link_follow(struct place *place, char **path, char **rest)
{
	char target[PATH_MAX];
	ssize_t length = readlinkat(place->directory, place->name, target, sizeof(target) - 1);
	struct text next = {0};

	if (length < 0)
		return -errno;
	target[length] = '\0';
	if (is_planted(place->directory, &place->file))
		return -OUTPUT_PLANTED;
	place->magic = !**rest && is_magic(place, target);
	if (place->magic)
		return 0;
	text_add_format(&next, "%s/%s", target, *rest);
	if (!**rest)
		next.bytes[--next.length] = '\0';
	free(*path);
	*path = *rest = text_take(&next);
	return 0;
}

static int directory_enter(struct place *place, const char *name)
{
	int next = openat(place->directory < 0 ? AT_FDCWD : place->directory, name,
			  O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (next < 0)
		return -errno;
	if (place->directory >= 0)
		close(place->directory);
	place->directory = next;
	return 0;
}

/* Goes one name further. 0, or -errno. */
static int place_step(struct place *place, char **path, char **rest, int *links)
{
	size_t length = strcspn(*rest, "/");

	if (length > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(place->name, *rest, length);
	place->name[length] = '\0';
	*rest += length;
	*rest += strspn(*rest, "/");
	place->there = !fstatat(place->directory, place->name, &place->file, AT_SYMLINK_NOFOLLOW);
	if (!place->there)
		return errno == ENOENT && !**rest ? 0 : -errno;
	if (!S_ISLNK(place->file.st_mode))
		return **rest ? directory_enter(place, place->name) : 0;
	if (++*links > LINKS_MAX)
		return -ELOOP;
	return link_follow(place, path, rest);
}

static void place_done(struct place *place)
{
	if (place->directory >= 0)
		close(place->directory);
	place->directory = -1;
}

/* 0: place is the caller's to place_done(), or -errno. */
static int place_walk(struct place *place, const char *path)
{
	static char here[] = ".";
	struct text copy = {0};
	char *whole, *rest;
	int err = 0, links = 0;

	*place = (struct place){.directory = -1};
	text_add_string(&copy, path);
	whole = rest = text_take(&copy);
	if (!whole)
		return -ENOENT;
	if (*rest != '/')
		err = directory_enter(place, ".");
	while (!err && *rest && !place->magic) {
		if (*rest == '/') {
			err = directory_enter(place, "/");
			rest += strspn(rest, "/");
			if (!*rest)
				rest = here;
		}
		if (!err)
			err = place_step(place, &whole, &rest, &links);
	}
	if (!err && place->magic && fstatat(place->directory, place->name, &place->file, 0))
		err = -errno;
	if (err)
		place_done(place);
	free(whole);
	return err;
}

/* Walks to the place of a file, as place_walk() does; refuses directories and planted files. */
static int place_find(struct place *place, const char *path)
{
	int err = place_walk(place, path);

	if (err)
		return err;
	if (place->there && S_ISDIR(place->file.st_mode))
		err = -EISDIR;
	else if (place->there && !S_ISREG(place->file.st_mode) && !place->magic &&
		 is_planted(place->directory, &place->file))
		err = -OUTPUT_PLANTED;
	if (err)
		place_done(place);
	return err;
}

static int place_open(const struct place *place, int flags, mode_t mode)
{
	int fd = openat(place->directory, place->name,
			flags | O_CLOEXEC | (place->magic ? 0 : O_NOFOLLOW), mode);

	return fd < 0 ? -errno : fd;
}

struct output_file {
	struct place place;
	struct text beside; /* name of the new file until it is whole; none: the file is written in
			       its place */
	mode_t mode;
	int fd;
};

/* A new file beside the place, whose name it is given. A descriptor, or -errno. */
static int beside_create(const struct place *place, struct text *name)
{
	int fd = -1;

	for (int i = 0; fd < 0 && i < BESIDE_TRIES; i++) {
		uint32_t dice;

		if (getrandom(&dice, sizeof(dice), 0) != sizeof(dice))
			return -errno;
		text_clear(name);
		text_add_format(name, "%.200s.%08x", place->name, dice);
		fd = openat(place->directory, name->bytes,
			    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	return fd < 0 ? -errno : fd;
}

/* Permissions are those of a file of ours that was there, or what the umask leaves of these. */
static mode_t mode_of(const struct place *place, mode_t mode)
{
	mode_t mask = umask(0);

	umask(mask);
	return place->there && place->file.st_uid == geteuid() ? place->file.st_mode & 0777
							       : mode & ~mask;
}

static void file_free(struct output_file *file)
{
	place_done(&file->place);
	text_done(&file->beside);
	free(file);
}

struct output_file *output_begin(const char *path, mode_t mode, int *err)
{
	struct output_file *file = memory_get(sizeof(*file));

	*err = place_find(&file->place, path);
	if (*err) {
		free(file);
		return NULL;
	}
	/* a rename as root would put a regular file in the place of /dev/null */
	if (file->place.there && !S_ISREG(file->place.file.st_mode))
		file->fd = place_open(&file->place, O_WRONLY, 0);
	else
		file->fd = beside_create(&file->place, &file->beside);
	file->mode = mode;
	if (file->fd >= 0)
		return file;
	*err = file->fd;
	file_free(file);
	return NULL;
}

int output_descriptor(const struct output_file *file)
{
	return file->fd;
}

int output_end(struct output_file *file, int err)
{
	int directory = file->place.directory;
	const char *beside = file->beside.length ? text_string(&file->beside) : NULL;

	if (beside && fchmod(file->fd, mode_of(&file->place, file->mode)) && !err)
		err = -errno;
	if (close(file->fd) && !err)
		err = -errno;
	if (beside && !err && renameat(directory, beside, directory, file->place.name))
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

int output_create(const char *path)
{
	struct place place;
	int err = place_find(&place, path), fd;

	if (err)
		return err;
	if (place.there && is_planted(place.directory, &place.file) && !place.magic)
		fd = -OUTPUT_PLANTED;
	else
		fd = place_open(&place, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	place_done(&place);
	return fd;
}

int output_directory(const char *path, mode_t mode)
{
	struct place place;
	int err = place_walk(&place, path), fd;

	if (err)
		return err;
	if (!place.there && mkdirat(place.directory, place.name, mode) && errno != EEXIST)
		fd = -errno;
	else
		fd = place_open(&place, O_RDONLY | O_DIRECTORY, 0);
	place_done(&place);
	return fd;
}

int output_replace_check(const char *path)
{
	struct place place;
	int err = place_find(&place, path);

	if (err)
		return err;
	if (place.there && !S_ISREG(place.file.st_mode))
		err = faccessat(place.directory, place.name, W_OK, 0) ? -errno : 0;
	else
		err = faccessat(place.directory, ".", W_OK | X_OK, 0) ? -errno : 0;
	place_done(&place);
	return err;
}

const char *output_error(int err)
{
	if (err == -OUTPUT_PLANTED)
		return "another user has put it, or a link on the way to it, into a directory of "
		       "everybody's";
	if (err == -OUTPUT_UNREAD)
		return "who reads it did not take all in time after SIGTERM; the rest is lost";
	return strerror(-err);
}
