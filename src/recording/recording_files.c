/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/recording_files.h"
#include "base/memory.h"
#include "base/text.h"
#include "recording/part_list.h"
#include "sample/sample.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool name_wanted(const struct part_name *name, const struct recording_part *part)
{
	return (part->from_us == ABSENT || part->from_of_day ||
		name->hour_us + PART_HOUR_US > part->from_us) &&
	       (part->until_us == ABSENT || part->until_of_day || name->hour_us < part->until_us);
}

static void file_add(struct recording_files *files, const struct recording_file *file)
{
	files->files = memory_grow(files->files, &files->capacity, files->count + 1,
				   sizeof(*files->files));
	files->files[files->count++] = *file;
}

static void part_add(struct recording_files *files, const char *directory,
		     const struct part_name *name)
{
	char file_name[PART_NAME_SIZE];
	struct text path = {0};

	part_name_write(name, file_name);
	text_add_format(&path, "%s/%s", directory, file_name);
	file_add(files, &(struct recording_file){
				.path = text_take(&path), .is_part = true, .name = *name});
}

static int directory_add(struct recording_files *files, const char *path,
			 const struct recording_part *part, struct error *e)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;
	struct part_list list = {0};

	err = fd < 0 ? -errno : part_list_read(&list, fd);
	if (fd >= 0)
		close(fd);
	for (size_t i = 0; !err && i < list.count; i++) {
		if (name_wanted(&list.files[i].name, part))
			part_add(files, path, &list.files[i].name);
		else
			files->passed++;
	}
	files->strange += list.strange;
	part_list_done(&list);
	return err ? error_set(e, -err, EXIT_FAILED, "%s: %s", path, strerror(-err)) : 0;
}

static bool is_there(const struct recording_files *files, const struct recording_file *file)
{
	for (size_t i = 0; i < files->count; i++)
		if (files->files[i].inode == file->inode && files->files[i].device == file->device)
			return true;
	return false;
}

int recording_files_add(struct recording_files *files, const char *path,
			const struct recording_part *part, struct error *e)
{
	const char *base = strrchr(path, '/');
	struct recording_file file = {0};
	struct stat there;

	if (!strcmp(path, "-")) {
		file.streamed = true;
	} else {
		if (stat(path, &there))
			return error_set(e, errno, EXIT_FAILED, "%s: %s", path, strerror(errno));
		if (S_ISDIR(there.st_mode))
			return directory_add(files, path, part, e);
		file.streamed = !S_ISREG(there.st_mode);
		file.device = there.st_dev;
		file.inode = there.st_ino;
		if (!file.streamed && is_there(files, &file)) {
			files->twice++;
			return 0;
		}
		file.is_part = part_name_read(base ? base + 1 : path, &file.name);
	}
	if (file.is_part && !name_wanted(&file.name, part)) {
		files->passed++;
		return 0;
	}
	file.path = memory_text(path, strlen(path));
	file_add(files, &file);
	return 0;
}

static int file_compare(const void *a, const void *b)
{
	const struct recording_file *one = a, *other = b;

	return part_name_compare(&one->name, &other->name);
}

int recording_files_end(struct recording_files *files, const char *name, struct error *e)
{
	bool parts = files->count;

	if (!files->count && files->passed)
		return error_set(e, ENODATA, EXIT_FAILED,
				 "%s: nothing was recorded in that time (%zu files are of other "
				 "hours)",
				 name, files->passed);
	if (!files->count)
		return error_set(e, ENODATA, EXIT_FAILED,
				 "%s: it contains no files that tsnap -o wrote%s", name,
				 files->strange ? "; links are not followed" : "");
	for (size_t i = 0; i < files->count; i++) {
		const struct recording_file *file = &files->files[i], *first = &files->files[0];

		parts &= file->is_part;
		if (parts && strcmp(file->name.host, first->name.host))
			return error_set(e, EINVAL, EXIT_USAGE,
					 "%s: recordings of more than one host, %s and %s: name "
					 "the files of one, such as --replay %s/%s_*",
					 name, first->name.host, file->name.host, name,
					 first->name.host);
	}
	/* other files stay in the order in which they were typed */
	if (parts)
		qsort(files->files, files->count, sizeof(*files->files), file_compare);
	return 0;
}

bool recording_file_has(const struct recording_file *file, enum record_kind kind)
{
	return file->is_part ? file->name.kind == kind : kind == RECORD_SAMPLES || !file->streamed;
}

size_t recording_files_scanless(const struct recording_files *files, enum record_kind samples,
				enum record_kind scans)
{
	size_t lacking = 0;

	for (size_t i = 0; i < files->count; i++) {
		struct part_name name = files->files[i].name;
		size_t next = i + 1;

		if (!files->files[i].is_part || files->files[i].inode || name.kind != samples)
			continue;
		/* those of a directory are in order: scans come soon after their samples */
		name.kind = scans;
		while (next < files->count &&
		       part_name_compare(&files->files[next].name, &name) < 0)
			next++;
		lacking += next == files->count ||
			   part_name_compare(&files->files[next].name, &name) != 0;
	}
	return lacking;
}

void recording_files_done(struct recording_files *files)
{
	for (size_t i = 0; i < files->count; i++)
		free(files->files[i].path);
	free(files->files);
	*files = (struct recording_files){0};
}
