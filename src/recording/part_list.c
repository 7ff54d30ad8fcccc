/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/part_list.h"
#include "base/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

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
