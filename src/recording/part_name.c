/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/part_name.h"
#include "base/memory.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SUFFIX ".csv.zst"

int64_t part_hour(int64_t time_us)
{
	int64_t in_hour = time_us % PART_HOUR_US;

	return time_us - in_hour - (in_hour < 0 ? PART_HOUR_US : 0);
}

void part_host(const char *name, char host[PART_HOST_SIZE])
{
	size_t length = 0;

	for (; name[length] && length < PART_HOST_SIZE - 1; length++)
		host[length] = isascii(name[length]) && isalnum(name[length]) ? name[length] : '-';
	for (size_t i = 1; i < length; i++)
		if (name[i] == '.')
			host[i] = '.';
	if (!length)
		host[length++] = '-';
	host[length] = '\0';
}

void part_stem_write(const struct part_name *part, char stem[PART_STEM_SIZE])
{
	time_t seconds = part->hour_us / 1000000;
	struct tm tm;
	char hour[32];

	gmtime_r(&seconds, &tm);
	strftime(hour, sizeof(hour), "%Y%m%dT%HZ", &tm);
	snprintf(stem, PART_STEM_SIZE, "%s_%s-%03d", part->host, hour, part->number);
}

void part_name_write(const struct part_name *part, char name[PART_NAME_SIZE])
{
	char stem[PART_STEM_SIZE];

	part_stem_write(part, stem);
	snprintf(name, PART_NAME_SIZE, "%s.%s" SUFFIX, stem, record_kind_name(part->kind));
}

/* Reads the fields by position, then writes the name again and compares: that checks all else. */
bool part_name_read(const char *name, struct part_name *part)
{
	const char *line = strchr(name, '_'), *kind;
	size_t host_length = line ? (size_t)(line - name) : 0;
	char again[PART_NAME_SIZE], kind_name[32];
	struct tm tm = {0};

	if (!line || !host_length || host_length >= PART_HOST_SIZE ||
	    strlen(name) >= PART_NAME_SIZE)
		return false;
	*part = (struct part_name){0};
	memcpy(part->host, name, host_length);
	if (sscanf(line, "_%4d%2d%2dT%2dZ-%6d", &tm.tm_year, &tm.tm_mon, &tm.tm_mday, &tm.tm_hour,
		   &part->number) != 5)
		return false;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	part->hour_us = timegm(&tm) * 1000000ll;
	kind = strchr(line, '.');
	if (!kind || sscanf(kind, ".%31[a-z]" SUFFIX, kind_name) != 1)
		return false;
	part->kind = record_kind_find(kind_name);
	if (part->kind == RECORD_KIND_COUNT)
		return false;
	part_name_write(part, again);
	return !strcmp(again, name);
}

int part_name_compare(const struct part_name *a, const struct part_name *b)
{
	int order = strcmp(a->host, b->host);

	if (order)
		return order;
	if (a->hour_us != b->hour_us)
		return a->hour_us < b->hour_us ? -1 : 1;
	if (a->number != b->number)
		return a->number < b->number ? -1 : 1;
	return (int)a->kind - (int)b->kind;
}

static int file_compare(const void *a, const void *b)
{
	const struct part_file *one = a, *other = b;

	return part_name_compare(&one->name, &other->name);
}

static void file_add(struct part_list *list, int directory, const char *name)
{
	struct part_file file;
	struct stat there;

	if (!part_name_read(name, &file.name) ||
	    fstatat(directory, name, &there, AT_SYMLINK_NOFOLLOW))
		return;
	if (!S_ISREG(there.st_mode)) {
		list->strange++;
		return;
	}
	file.bytes = (uint64_t)there.st_size;
	file.user = there.st_uid;
	list->files = memory_grow(list->files, &list->capacity, list->count + 1, sizeof(file));
	list->files[list->count++] = file;
}

int part_list_read(struct part_list *list, int directory)
{
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *names = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int err = 0;

	if (!names) {
		err = -errno;
		if (fd >= 0)
			close(fd);
		return err;
	}
	while ((errno = 0, entry = readdir(names)))
		file_add(list, directory, entry->d_name);
	err = -errno;
	closedir(names);
	if (list->count)
		qsort(list->files, list->count, sizeof(*list->files), file_compare);
	return err;
}

void part_list_done(struct part_list *list)
{
	free(list->files);
	*list = (struct part_list){0};
}
