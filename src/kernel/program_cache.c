/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/program_cache.h"
#include "base/file_rights.h"
#include "base/index.h"
#include "base/memory.h"
#include "base/output.h"
#include "kernel/btf_types.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define NOTES_PATH "/sys/kernel/notes" /* the kernel's build id, among others */
#define NOTES_BYTES_MAX 65536
#define NAME_SIZE 40
#define NAME_END ".programs"
#define NEW_END ".new"
#define NEW_STALE_S 60 /* a file that a killed tsnap has begun is removed after that */
#define FILE_BYTES_MAX (64u << 20)

/* Reads the descriptor to its end into *bytes (malloced). The number of bytes, or -errno; -EFBIG:
 * there are more than that many. */
static ssize_t descriptor_read(int fd, size_t most, char **bytes)
{
	size_t at = 0, capacity = 0;
	ssize_t got = 1;

	*bytes = NULL;
	while (got > 0 && at <= most) {
		*bytes = memory_grow(*bytes, &capacity, at + 65536, 1);
		got = read(fd, *bytes + at, capacity - at);
		if (got < 0 && errno == EINTR)
			got = 1;
		else if (got > 0)
			at += (size_t)got;
	}
	if (got >= 0 && at <= most)
		return (ssize_t)at;
	got = got < 0 ? -errno : -EFBIG;
	free(*bytes);
	*bytes = NULL;
	return got;
}

/* A hash of what the kernel says of its own build; 0: nothing. */
static uint64_t notes_hash(void)
{
	int fd = open(NOTES_PATH, O_RDONLY | O_CLOEXEC);
	char *bytes = NULL;
	ssize_t count = fd < 0 ? 0 : descriptor_read(fd, NOTES_BYTES_MAX, &bytes);
	uint64_t hash = count > 0 ? hash_bytes(bytes, (size_t)count) : 0;

	free(bytes);
	if (fd >= 0)
		close(fd);
	return hash;
}

void kernel_build_read(char build[KERNEL_BUILD_SIZE])
{
	struct stat types = {.st_size = 0};
	struct utsname name;

	memset(build, 0, KERNEL_BUILD_SIZE);
	if (uname(&name))
		memset(&name, 0, sizeof(name));
	if (stat(KERNEL_BTF_PATH, &types))
		types.st_size = 0;
	snprintf(build, KERNEL_BUILD_SIZE, "%.64s %.64s %.32s, notes %016llx, %lld bytes of types",
		 name.release, name.version, name.machine, (unsigned long long)notes_hash(),
		 (long long)types.st_size);
}

/* Hashes the notes of the program's own ELF file: its build id is in them. */
static int notes_add(struct dl_phdr_info *object, size_t size, void *to)
{
	uint64_t *hash = to;

	(void)size;
	for (int i = 0; i < object->dlpi_phnum; i++)
		if (object->dlpi_phdr[i].p_type == PT_NOTE)
			*hash = hash_u64(*hash ^ hash_bytes((const char *)object->dlpi_addr +
								    object->dlpi_phdr[i].p_vaddr,
							    object->dlpi_phdr[i].p_memsz));
	return 1; /* the first object is the program */
}

uint64_t own_build_hash(void)
{
	uint64_t hash = 0;

	dl_iterate_phdr(notes_add, &hash);
	return hash;
}

/* True if both serve the same starts; how they were made may differ. */
static bool is_same(const struct program_set *one, const struct program_set *other)
{
	return !strcmp(one->kernel, other->kernel) && one->wanted == other->wanted &&
	       one->near_threads == other->near_threads;
}

/* --- the directory */

/* Words that say why somebody but root may have put the file or directory there; NULL: nobody. */
static const char *foreign_why(const struct stat *about)
{
	if (about->st_uid)
		return "it does not belong to root";
	if (about->st_mode & (S_IWGRP | S_IWOTH))
		return "others than root may write to it";
	return NULL;
}

/* Enters a directory. A link is not followed. A descriptor, or -errno. */
static int step_open(int at, const char *name, bool last)
{
	return openat(at, name, O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | (last ? O_RDONLY : O_PATH));
}

/* Checks a directory on the way. In one with the sticky bit, as /tmp, others can't replace what is
 * root's. */
static const char *step_why(int fd, bool last)
{
	struct stat about;

	if (fstat(fd, &about))
		return strerror(errno);
	if (!last && about.st_mode & S_ISVTX)
		about.st_mode &= ~(mode_t)(S_IWGRP | S_IWOTH);
	return foreign_why(&about);
}

/* Opens the directory; make: and makes it, if it is not there. Nobody but root may have put it, or
 * a directory on the way to it, there. A descriptor, or -errno with why. */
static int cache_open(const char *path, bool make, char *why)
{
	const char *words = NULL;
	char step[PATH_MAX];
	int at = -1, err = 0;

	if (geteuid())
		words = "only root has a cache";
	else if (*path != '/' || strlen(path) >= sizeof(step))
		words = "its path must be absolute";
	else
		at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	while (at >= 0 && !words && *path) {
		size_t length = strcspn(path + 1, "/");
		bool last = !path[1 + length + strspn(path + 1 + length, "/")];
		int next;

		memcpy(step, path + 1, length);
		step[length] = '\0';
		path += 1 + length;
		if (!length)
			continue;
		next = step_open(at, step, last);
		if (next < 0 && errno == ENOENT && last && make && !mkdirat(at, step, 0700)) {
			next = step_open(at, step, last);
			/* the umask and the directory's default ACL are not ours */
			if (next >= 0)
				file_rights_set(next, &(struct file_rights){getegid(), 0700});
		}
		err = next < 0 ? errno : 0;
		close(at);
		at = next;
		words = at < 0 ? strerror(err) : step_why(at, last);
	}
	if (at >= 0 && !words)
		return at;
	snprintf(why, PROGRAM_CACHE_WHY_SIZE, "%s", words ? words : strerror(errno));
	if (at >= 0)
		close(at);
	return err ? -err : -EPERM;
}

static void entry_name(const struct program_set *set, char name[NAME_SIZE])
{
	const uint64_t keys[] = {hash_bytes(set->kernel, strlen(set->kernel)), set->wanted,
				 set->how, set->near_threads};

	snprintf(name, NAME_SIZE, "%016llx" NAME_END,
		 (unsigned long long)hash_bytes(keys, sizeof(keys)));
}

/* Opens a file of the directory and reads it whole. The number of bytes, or -errno with why. */
static ssize_t entry_read(int directory, const char *name, char **bytes, char *why)
{
	/* a FIFO would wait for its writer */
	int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	const char *foreign = NULL;
	ssize_t count = -EPERM;
	struct stat about;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &about))
		count = -errno;
	else if (!S_ISREG(about.st_mode) || about.st_nlink != 1)
		foreign = "it is not a regular file of one name";
	else
		foreign = foreign_why(&about);
	if (!foreign && count == -EPERM)
		count = descriptor_read(fd, PROGRAM_SET_BYTES_MAX, bytes);
	if (foreign)
		snprintf(why, PROGRAM_CACHE_WHY_SIZE, "%s: %s", name, foreign);
	/* the time of the last use */
	if (count > 0)
		futimens(fd, NULL);
	close(fd);
	return count;
}

int program_cache_get(const char *path, const struct program_set *like, struct program_set *set,
		      char *why)
{
	char name[NAME_SIZE], *bytes = NULL;
	int directory;
	ssize_t count;
	size_t used;

	*why = '\0';
	directory = cache_open(path, false, why);
	if (directory == -ENOENT)
		*why = '\0';
	if (directory < 0)
		return -ENOENT;
	entry_name(like, name);
	count = entry_read(directory, name, &bytes, why);
	close(directory);
	if (count < 0) {
		if (!*why && count != -ENOENT)
			snprintf(why, PROGRAM_CACHE_WHY_SIZE, "%s: %s", name,
				 strerror((int)-count));
		return -ENOENT;
	}
	if (program_set_read(bytes, (size_t)count, set, &used)) {
		snprintf(why, PROGRAM_CACHE_WHY_SIZE, "%s is damaged", name);
		count = 0;
	} else if (used != (size_t)count || !is_same(set, like) || set->how != like->how) {
		snprintf(why, PROGRAM_CACHE_WHY_SIZE, "%s has something else", name);
		program_set_done(set);
		count = 0;
	}
	free(bytes);
	return count ? 0 : -ENOENT;
}

struct entry {
	char name[NAME_SIZE];
	struct timespec used;
	off_t bytes;
};

static int entry_later(const void *one, const void *other)
{
	const struct timespec *a = &((const struct entry *)one)->used;
	const struct timespec *b = &((const struct entry *)other)->used;

	return a->tv_sec != b->tv_sec ? (a->tv_sec < b->tv_sec) - (a->tv_sec > b->tv_sec)
				      : (a->tv_nsec < b->tv_nsec) - (a->tv_nsec > b->tv_nsec);
}

/* Removes what is beyond the limits, those used longest ago first, and what killed ones have
 * begun. */
static void cache_sweep(int directory)
{
	int listing = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = listing < 0 ? NULL : fdopendir(listing);
	struct entry *entries = NULL;
	size_t count = 0, capacity = 0;
	struct dirent *found;
	off_t bytes = 0;

	if (!dir && listing >= 0)
		close(listing);
	while (dir && (found = readdir(dir))) {
		struct stat about;

		if (strlen(found->d_name) >= NAME_SIZE ||
		    fstatat(directory, found->d_name, &about, AT_SYMLINK_NOFOLLOW))
			continue;
		if (text_ends(found->d_name, NEW_END) &&
		    about.st_mtim.tv_sec + NEW_STALE_S < time(NULL))
			unlinkat(directory, found->d_name, 0);
		if (!text_ends(found->d_name, NAME_END))
			continue;
		entries = memory_grow(entries, &capacity, count + 1, sizeof(*entries));
		entries[count] = (struct entry){.used = about.st_mtim, .bytes = about.st_size};
		snprintf(entries[count++].name, NAME_SIZE, "%s", found->d_name);
	}
	if (dir)
		closedir(dir);
	if (count)
		qsort(entries, count, sizeof(*entries), entry_later);
	for (size_t i = 0; i < count; i++) {
		bytes += entries[i].bytes;
		if (i >= PROGRAM_CACHE_FILES || bytes > (off_t)PROGRAM_CACHE_BYTES)
			unlinkat(directory, entries[i].name, 0);
	}
	free(entries);
}

int program_cache_put(const char *path, const struct program_set *set, const struct text *bytes,
		      char *why)
{
	char name[NAME_SIZE], beside[NAME_SIZE];
	int directory, fd, err;

	*why = '\0';
	directory = cache_open(path, true, why);
	if (directory < 0)
		return directory;
	entry_name(set, name);
	snprintf(beside, sizeof(beside), "%ld.%lx" NEW_END, (long)getpid(),
		 (unsigned long)clock() + (unsigned long)time(NULL));
	fd = openat(directory, beside, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	err = fd < 0 ? -errno : file_rights_set(fd, &(struct file_rights){getegid(), 0600});
	if (!err)
		err = output_write(fd, bytes->bytes, bytes->length);
	if (fd >= 0 && close(fd) && !err)
		err = -errno;
	if (!err && renameat(directory, beside, directory, name))
		err = -errno;
	if (err && fd >= 0)
		unlinkat(directory, beside, 0);
	if (err)
		snprintf(why, PROGRAM_CACHE_WHY_SIZE, "%s", strerror(-err));
	else
		cache_sweep(directory);
	close(directory);
	return err;
}

/* --- files of --write-programs */

/* Reads a file whole. The number of bytes, or -errno with e; -ENOENT without words. */
static ssize_t file_read(const char *path, char **bytes, struct error *e)
{
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	const char *why = NULL;
	struct stat about;
	ssize_t count = 0;

	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	if (fd < 0 || fstat(fd, &about))
		count = -errno;
	else if (!S_ISREG(about.st_mode))
		why = "it is not a regular file";
	else if (!only_trusted_write(&about))
		why = "others may write to it, and could have any program loaded (chown root, "
		      "chmod go-w)";
	if (!count && !why)
		count = descriptor_read(fd, FILE_BYTES_MAX, bytes);
	if (fd >= 0)
		close(fd);
	if (count < 0)
		why = strerror((int)-count);
	return why ? error_set(e, count < 0 ? (int)-count : EPERM, EXIT_FAILED,
			       "programs file '%s' can't be read: %s", path, why)
		   : count;
}

/* Calls each with each set of the file, which belongs to the walk, and its bytes. 0, or -EINVAL
 * with e. */
static int sets_walk(const char *path, const char *bytes, size_t count,
		     void (*each)(void *to, struct program_set *set, const char *from, size_t used),
		     void *to, struct error *e)
{
	size_t at = 0, used;

	do {
		struct program_set set;

		if (program_set_read(bytes + at, count - at, &set, &used))
			return error_set(e, EINVAL, EXIT_FAILED,
					 "'%s' is no file of programs, or is cut off or damaged "
					 "(at byte %zu of %zu): tsnap --write-programs writes one",
					 path, at, count);
		each(to, &set, bytes + at, used);
		program_set_done(&set);
		at += used;
	} while (at < count);
	return 0;
}

struct search {
	const struct program_set *like;
	struct program_set *best; /* empty: none so far */
	bool found, kernel_found;
	char other[KERNEL_BUILD_SIZE]; /* another kernel in the file */
};

static uint32_t distance(uint32_t one, uint32_t other)
{
	return one < other ? other - one : one - other;
}

static void set_meet(void *to, struct program_set *set, const char *from, size_t used)
{
	struct search *search = to;
	const uint32_t near = search->like->near_threads;

	(void)from;
	(void)used;
	if (strcmp(set->kernel, search->like->kernel) != 0) {
		memcpy(search->other, set->kernel, sizeof(search->other));
		return;
	}
	search->kernel_found = true;
	if (set->wanted != search->like->wanted ||
	    (search->found &&
	     distance(set->near_threads, near) >= distance(search->best->near_threads, near)))
		return;
	program_set_done(search->best);
	*search->best = *set;
	*set = (struct program_set){.map_count = 0};
	search->found = true;
}

int program_file_find(const char *path, const struct program_set *like, struct program_set *set,
		      struct error *e)
{
	struct search search = {.like = like, .best = set};
	char *bytes = NULL;
	ssize_t count = file_read(path, &bytes, e);
	int result;

	*set = (struct program_set){.map_count = 0};
	if (count == -ENOENT)
		return error_set(e, ENOENT, EXIT_FAILED, "programs file '%s' can't be read: %s",
				 path, strerror(ENOENT));
	result = count < 0 ? (int)count
			   : sets_walk(path, bytes, (size_t)count, set_meet, &search, e);
	free(bytes);
	if (!result && search.found)
		return 0;
	program_set_done(set);
	if (result)
		return result;
	if (!search.kernel_found)
		return error_set(e, EINVAL, EXIT_FAILED,
				 "programs file '%s' is of another kernel build: of %s, and this "
				 "host runs %s",
				 path, search.other, like->kernel);
	return error_set(e, EINVAL, EXIT_FAILED,
			 "programs file '%s' has none for these options: on a host with this "
			 "kernel and a compiler, add --write-programs to them",
			 path);
}

struct addition {
	const struct program_set *set;
	struct text whole;
};

static void set_copy(void *to, struct program_set *set, const char *from, size_t used)
{
	struct addition *addition = to;

	if (!is_same(set, addition->set))
		text_add(&addition->whole, from, used);
}

int program_file_add(const char *path, const struct program_set *set, const struct text *bytes,
		     struct error *e)
{
	struct addition addition = {.set = set};
	char *before = NULL;
	ssize_t count = file_read(path, &before, e);
	int result = count < 0 && count != -ENOENT ? (int)count : 0;

	if (!result && count > 0)
		result = sets_walk(path, before, (size_t)count, set_copy, &addition, e);
	free(before);
	if (!result) {
		text_add(&addition.whole, bytes->bytes, bytes->length);
		result = output_replace(path, addition.whole.bytes, addition.whole.length);
		if (result)
			error_set(e, -result, EXIT_FAILED,
				  "programs file '%s' can't be written: %s", path,
				  output_error(result));
	}
	text_done(&addition.whole);
	return result;
}
