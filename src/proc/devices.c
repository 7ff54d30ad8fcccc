/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/devices.h"
#include "base/clock.h"
#include "base/host_file.h"
#include "base/names.h"
#include "base/cache.h"
#include "sample/sample.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MINOR_BITS 20 /* MINORBITS of include/linux/kdev_t.h */
#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#define RESOLVES_CACHED 0x20 /* RESOLVE_CACHED of linux/openat2.h, 5.12 */

struct device {
	struct cache_entry entry;
	int64_t read_ns;
	const char *name;
};

struct below {
	struct cache_entry entry; /* key: hash of the name of the device above */
	int64_t read_ns;
	const char *name;
};

static struct cache devices = {.entry_bytes = sizeof(struct device), .entries_max = DEVICES_MAX},
		    belows = {.entry_bytes = sizeof(struct below), .entries_max = DEVICES_MAX};

static void device_number(uint32_t dev, char *number, size_t size)
{
	snprintf(number, size, "%u:%u", dev >> MINOR_BITS, dev & ((1u << MINOR_BITS) - 1));
}

/* sysfs has a ! for each / of a name: cciss!c0d0. */
static void letters_replace(char *name, char from, char to)
{
	for (; *name; name++)
		if (*name == from)
			*name = to;
}

const char *device_link_read(const char *root, uint32_t dev)
{
	char path[256], target[512], number[24], *name;
	ssize_t length;

	device_number(dev, number, sizeof(number));
	snprintf(path, sizeof(path), "%s/%s", root, number);
	length = readlink(path, target, sizeof(target) - 1);
	if (length <= 0)
		return NULL;
	target[length] = 0;
	name = strrchr(target, '/');
	if (!name || !name[1])
		return NULL;
	letters_replace(++name, '!', '/');
	return name_transient_string(name);
}

const char *device_name(uint32_t dev)
{
	int64_t now_ns = clock_monotonic_ns();
	struct device *device;
	const char *name;
	char number[24];
	bool added;

	if (!dev)
		return NULL;
	device = cache_get(&devices, dev, now_ns, &added);
	if (added || now_ns - device->read_ns >= DEVICES_RECHECK_NS) {
		name = device_link_read(DEVICE_LINKS, dev);
		if (name)
			device->name = name;
		device->read_ns = now_ns;
	}
	if (device->name)
		return device->name;
	device_number(dev, number, sizeof(number));
	return name_transient_string(number);
}

/* Places of files of a disk, by the folder of the disk, and of a part of it. */
static const char *const places[] = {"", "../"};

#define PLACE_COUNT (sizeof(places) / sizeof(*places))

/* Writes the path of a device's file. */
static void device_path(char path[PATH_MAX], const char *root, const char *name, const char *place,
			const char *file)
{
	char folder[256];

	snprintf(folder, sizeof(folder), "%s", name);
	letters_replace(folder, '/', '!');
	snprintf(path, PATH_MAX, "%s/%s/%s%s", root, folder, place, file);
}

int64_t device_rotates(const char *root, const char *name)
{
	char path[PATH_MAX], word[8];
	int64_t rotates = ABSENT;

	if (strchr(name, '.'))
		return ABSENT;
	for (size_t i = 0; rotates == ABSENT && i < PLACE_COUNT; i++) {
		device_path(path, root, name, places[i], "queue/rotational");
		if (host_file_read(path, word, sizeof(word)) > 0)
			rotates = *word == '1';
	}
	return rotates;
}

/* --- devices below others */

/* The device that an open file is on, or is. The path of an open file is in the kernel's memory,
 * and no others are looked up, so that no file system can hold the reader. NULL: not known, as
 * where the path is of another mount namespace, or the file has been removed. */
static const char *device_of_file(const char *path)
{
	const struct {
		uint64_t flags, mode, resolve;
	} how = {O_PATH | O_CLOEXEC | O_NOFOLLOW, 0, RESOLVES_CACHED};
	int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
	struct statx found = {0};

	if (fd < 0)
		return NULL;
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &found))
		found.stx_dev_major = 0;
	close(fd);
	if (S_ISBLK(found.stx_mode))
		return device_name(found.stx_rdev_major << MINOR_BITS | found.stx_rdev_minor);
	return found.stx_dev_major
		       ? device_name(found.stx_dev_major << MINOR_BITS | found.stx_dev_minor)
		       : NULL;
}

/* The only device in that folder of links. */
static const char *only_device(const char *path)
{
	DIR *folder = opendir(path);
	const struct dirent *link;
	char name[NAME_MAX + 1] = "";
	int count = 0;

	while (folder && (link = readdir(folder))) {
		if (*link->d_name == '.')
			continue;
		snprintf(name, sizeof(name), "%s", link->d_name);
		count++;
	}
	if (folder)
		closedir(folder);
	letters_replace(name, '!', '/');
	return count == 1 ? name_transient_string(name) : NULL;
}

const char *device_below_read(const char *root, const char *name)
{
	char path[PATH_MAX], file[PATH_MAX];
	const char *below = NULL;

	for (size_t i = 0; !below && !strchr(name, '.') && i < PLACE_COUNT; i++) {
		device_path(path, root, name, places[i], "loop/backing_file");
		if (host_file_read(path, file, sizeof(file)) > 0)
			return device_of_file(file);
		device_path(path, root, name, places[i], "slaves");
		below = only_device(path);
	}
	return below;
}

const char *device_below(const char *name)
{
	int64_t now_ns = clock_monotonic_ns();
	struct below *below;
	bool added;

	below = cache_get(&belows, hash_bytes(name, strlen(name)), now_ns, &added);
	if (added || now_ns - below->read_ns >= DEVICES_RECHECK_NS) {
		below->name = device_below_read(BLOCK_CLASS, name);
		below->read_ns = now_ns;
	}
	return below->name;
}

void devices_clear(void)
{
	cache_done(&devices);
	cache_done(&belows);
}
