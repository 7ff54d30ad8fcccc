/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/devices.h"
#include "base/clock.h"
#include "base/host_file.h"
#include "base/names.h"
#include "base/cache.h"
#include "sample/sample.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define MINOR_BITS 20 /* MINORBITS of include/linux/kdev_t.h */

struct device {
	struct cache_entry entry;
	int64_t read_ns;
	const char *name;
};

static struct cache devices = {.entry_bytes = sizeof(struct device), .entries_max = DEVICES_MAX};

static void device_number(uint32_t dev, char *number, size_t size)
{
	snprintf(number, size, "%u:%u", dev >> MINOR_BITS, dev & ((1u << MINOR_BITS) - 1));
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
	/* sysfs has a ! for each / of a name: cciss!c0d0 */
	for (char *at = ++name; *at; at++)
		if (*at == '!')
			*at = '/';
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

int64_t device_rotates(const char *root, const char *name)
{
	static const char *const places[] = {"queue", "../queue"}; /* of a disk, of its parts */
	char path[256], word[8], *at;
	int64_t rotates = ABSENT;

	if (strchr(name, '.'))
		return ABSENT;
	for (size_t i = 0; rotates == ABSENT && i < sizeof(places) / sizeof(places[0]); i++) {
		int length = snprintf(path, sizeof(path), "%s/", root);

		snprintf(path + length, sizeof(path) - (size_t)length, "%s", name);
		while ((at = strchr(path + length, '/')))
			*at = '!';
		length = (int)strlen(path);
		snprintf(path + length, sizeof(path) - (size_t)length, "/%s/rotational", places[i]);
		if (host_file_read(path, word, sizeof(word)) > 0)
			rotates = *word == '1';
	}
	return rotates;
}

void devices_clear(void)
{
	cache_done(&devices);
}
