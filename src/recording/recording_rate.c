/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/recording_rate.h"
#include "recording/frame.h"
#include "recording/part_list.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define DAY_US (86400 * US_PER_SECOND)

struct rate {
	uint64_t bytes, files; /* totals of the directory */
	uint64_t recent_bytes; /* parts of the last day that was recorded */
	uint64_t fine_bytes;   /* part of recent_bytes that is in the first tier */
	int64_t recent_us;     /* time recorded on the last day */
	int64_t archive_us;    /* time recorded into the archive on the last day */
};

/* Time between the first and the last frame of a file. */
static int64_t file_time(int directory, const char *name)
{
	int fd = openat(directory, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	int64_t first_us = 0, last_us = 0;
	unsigned char bytes[FRAME_HEAD_BYTES];
	struct frame_head head;
	off_t at = 0;

	while (fd >= 0 && pread(fd, bytes, sizeof(bytes), at) == sizeof(bytes) &&
	       frame_head_read(bytes, &head) && head.packed_bytes < INT32_MAX) {
		if (!head.header) {
			first_us = first_us ? first_us : head.first_us;
			last_us = head.last_us;
		}
		at += FRAME_HEAD_BYTES + (off_t)head.packed_bytes;
	}
	if (fd >= 0)
		close(fd);
	return last_us > first_us ? last_us - first_us : 0;
}

static void rate_find(struct rate *rate, const struct part_list *list, int directory)
{
	int64_t newest_us = 0;

	for (size_t i = 0; i < list->count; i++)
		if (list->files[i].name.hour_us > newest_us)
			newest_us = list->files[i].name.hour_us;
	for (size_t i = 0; i < list->count; i++) {
		const struct part_file *file = &list->files[i];
		char name[PART_NAME_SIZE];

		rate->files++;
		rate->bytes += file->bytes;
		if (file->name.hour_us <= newest_us - DAY_US)
			continue;
		rate->recent_bytes += file->bytes;
		if (retention_of_fine(file->name.kind))
			rate->fine_bytes += file->bytes;
		if (file->name.kind != RECORD_SCANS && file->name.kind != RECORD_ARCHIVE_SCANS)
			continue;
		part_name_write(&file->name, name);
		if (file->name.kind == RECORD_SCANS)
			rate->recent_us += file_time(directory, name);
		else
			rate->archive_us += file_time(directory, name);
	}
}

static void size_add(struct text *text, double bytes)
{
	static const char *const units[] = {"bytes", "KB", "MB", "GB", "TB"};
	size_t unit = 0;

	for (; bytes >= 10000 && unit < 4; unit++)
		bytes /= 1024;
	text_add_format(text, "%.0f %s", bytes, units[unit]);
}

static void lasts_add(struct text *text, const char *what, double bytes, double day_bytes)
{
	text_add_format(text, "  %s: ", what);
	size_add(text, bytes);
	text_add_format(text, ", %.1f days\n", bytes / day_bytes);
}

static void kept_add(struct text *text, const char *what, int64_t keep_us, double day_bytes)
{
	if (!keep_us)
		return;
	text_add_format(text, "  %s: ", what);
	size_add(text, day_bytes * (double)(keep_us + PART_HOUR_US) / (double)DAY_US);
	text_add_string(text, " at most\n");
}

/* Recorded time of the last day. With --when, only the archive has all of the time. */
static int64_t rate_us(const struct rate *rate)
{
	return rate->recent_us > rate->archive_us ? rate->recent_us : rate->archive_us;
}

static void rate_describe(const struct rate *rate, const struct retention *retention, int directory,
			  struct text *text)
{
	double days = (double)rate_us(rate) / (double)DAY_US, minutes = days * 24 * 60;
	double day_bytes = (double)rate->recent_bytes / days;
	double kept_bytes = retention->has_archive ? (double)rate->fine_bytes / days : day_bytes;
	struct statvfs system;

	text_add_string(text, "  a day takes ");
	size_add(text, day_bytes);
	text_add_format(text, " (as in the last %.1f %s that were recorded)\n",
			minutes < 60 ? minutes : minutes / 60, minutes < 60 ? "minutes" : "hours");
	kept_add(text, "--keep", retention->keep_us, kept_bytes);
	kept_add(text, "--keep-archive", retention->keep_archive_us, day_bytes - kept_bytes);
	if (retention->keep_bytes)
		lasts_add(text, "--keep-bytes", (double)retention->keep_bytes, day_bytes);
	if (!fstatvfs(directory, &system))
		lasts_add(text, "free space", (double)system.f_bavail * (double)system.f_frsize,
			  day_bytes);
}

int recording_rate_describe(const char *path, const struct retention *retention, struct text *text,
			    struct error *e)
{
	int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;
	struct part_list list = {0};
	struct rate rate = {0};

	err = directory < 0 ? -errno : part_list_read(&list, directory);
	if (err == -ENOENT) /* the recorder will make the directory */
		err = 0;
	if (!err) {
		rate_find(&rate, &list, directory);
		text_add_string(text, "\nRecording in ");
		text_add_printable(text, path);
		text_add_format(text, ": %llu files, ", (unsigned long long)rate.files);
		size_add(text, (double)rate.bytes);
		text_add_char(text, '\n');
		if (rate_us(&rate))
			rate_describe(&rate, retention, directory, text);
		else
			text_add_string(text, "  too little was recorded to tell how much a day "
					      "takes: record for some minutes\n");
	}
	if (directory >= 0)
		close(directory);
	part_list_done(&list);
	return err ? error_set(e, -err, EXIT_FAILED, "%s: %s", path, strerror(-err)) : 0;
}
