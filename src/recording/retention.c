/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/retention.h"
#include "recording/frame.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define PARTS_KEPT_LEAST 10

#define HOURS_BELIEVED 3
#define HOURS_AT_ONCE 24
#define BOUNDS "--keep-bytes, --keep-free"

/* Parts that were removed one after the other for the same reason. */
struct removed {
	struct part_name first, last;
	int files;
	const char *why;
};

static void removed_end(const struct removed *removed, struct retention_log *log)
{
	char first[PART_STEM_SIZE], last[PART_STEM_SIZE];

	if (!removed->files)
		return;
	part_stem_write(&removed->first, first);
	part_stem_write(&removed->last, last);
	text_add_format(&log->words, "removed (%s): %s%s%s, files: %d\n", removed->why, first,
			strcmp(first, last) ? " to " : "", strcmp(first, last) ? last : "",
			removed->files);
}

static void removed_add(struct removed *removed, const struct part_name *part, int files,
			const char *why, struct retention_log *log)
{
	if (removed->files && removed->why != why) {
		removed_end(removed, log);
		removed->files = 0;
	}
	if (!removed->files)
		removed->first = *part;
	removed->last = *part;
	removed->files += files;
	removed->why = why;
}

static bool same_part(const struct part_name *a, const struct part_name *b)
{
	return a->hour_us == b->hour_us && a->number == b->number;
}

static bool free_enough(const struct retention *retention, int directory, uint64_t coming)
{
	struct statvfs system;
	uint64_t available, least;

	if (!retention->keep_free_tenths || fstatvfs(directory, &system))
		return true;
	available = (uint64_t)system.f_bavail * system.f_frsize;
	least = (uint64_t)system.f_blocks / 1000 * (uint64_t)retention->keep_free_tenths *
		system.f_frsize;
	return available >= coming && available - coming >= least;
}

/* True if files of that kind are in the first tier of a recording that has an archive. */
static bool retention_of_fine(enum record_kind kind)
{
	return kind == RECORD_SAMPLES || kind == RECORD_SCANS;
}

/* Removes the files of the part that begins at files[at]: those of the first tier, or all. The
 * number of files, or -errno. */
static int part_remove(struct part_list *list, size_t at, bool fine, int directory, uint64_t *bytes)
{
	const struct part_name part = list->files[at].name;
	int count = 0;

	for (size_t i = at; i < list->count && same_part(&list->files[i].name, &part) &&
			    !strcmp(list->files[i].name.host, part.host);
	     i++) {
		char name[PART_NAME_SIZE];

		if (fine && !retention_of_fine(list->files[i].name.kind))
			continue;
		part_name_write(&list->files[i].name, name);
		if (unlinkat(directory, name, 0) && errno != ENOENT)
			return -errno;
		*bytes -= list->files[i].bytes;
		list->files[i].bytes = 0;
		count++;
	}
	return count;
}

struct shrink {
	const struct retention *retention;
	struct retention_log *log;
	struct part_list *list;
	int directory;
	const struct part_name *present;
	int64_t now_us;
	uint64_t bytes, coming; /* bytes of existing files, and of frames to be written */
};

static bool within_bounds(const struct shrink *shrink)
{
	uint64_t most = (uint64_t)shrink->retention->keep_bytes;

	return (!most || shrink->bytes + shrink->coming <= most) &&
	       free_enough(shrink->retention, shrink->directory, shrink->coming);
}

/* Returns the time from which ages count: now, but not ahead of the newest recorded hours. What was
 * recorded in a few seconds of a clock that was ahead is one hour, or two; after a pause it takes
 * three hours until the new time counts. */
static int64_t age_now(const struct shrink *shrink)
{
	const struct part_list *list = shrink->list;
	int64_t hour_us = shrink->now_us;
	int hours = 0;

	for (size_t i = list->count; i > 0 && hours < HOURS_BELIEVED; i--) {
		const struct part_name *part = &list->files[i - 1].name;

		if (strcmp(part->host, shrink->present->host) || part->hour_us > shrink->now_us ||
		    (hours && part->hour_us == hour_us))
			continue;
		hour_us = part->hour_us;
		hours++;
	}
	hour_us += HOURS_BELIEVED * PART_HOUR_US;
	return hour_us < shrink->now_us ? hour_us : shrink->now_us;
}

/* True if an old hour may be removed: no more than a day of hours is in each that is recorded. */
static bool age_allows(struct retention_log *log, int64_t hour_us)
{
	return log->aged < HOURS_AT_ONCE || log->aged_us == hour_us;
}

static void log_age(struct retention_log *log, int64_t hour_us)
{
	log->aged += log->aged_us != hour_us;
	log->aged_us = hour_us;
}

/* Removes parts of a tier from the oldest on: those older than keep_us, and further ones until the
 * bounds hold. The log gets a line for each of these reasons. */
static int tier_shrink(struct shrink *shrink, bool fine, int64_t keep_us, const char *why)
{
	const struct part_name *present = shrink->present;
	struct retention_log *log = shrink->log;
	struct part_list *list = shrink->list;
	int64_t oldest_us = age_now(shrink) - keep_us;
	struct removed removed = {0};
	int files = 0;

	for (size_t i = 0; files >= 0 && i < list->count; i++) {
		const struct part_name *part = &list->files[i].name;
		bool old = keep_us && part->hour_us + PART_HOUR_US < oldest_us &&
			   age_allows(log, part->hour_us);

		if (strcmp(part->host, present->host) || same_part(part, present) ||
		    (i && same_part(part, &list->files[i - 1].name) &&
		     !strcmp(part->host, list->files[i - 1].name.host)))
			continue;
		if (!old && within_bounds(shrink))
			break;
		files = part_remove(list, i, fine, shrink->directory, &shrink->bytes);
		if (files <= 0)
			continue;
		if (old)
			log_age(log, part->hour_us);
		removed_add(&removed, part, files, old ? why : BOUNDS, log);
	}
	removed_end(&removed, log);
	return files < 0 ? files : 0;
}

static int list_shrink(struct shrink *shrink)
{
	const struct retention *retention = shrink->retention;
	const struct part_list *list = shrink->list;
	int err = 0;

	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->files[i].name.host, shrink->present->host))
			shrink->bytes += list->files[i].bytes;
	if (retention->has_archive)
		err = tier_shrink(shrink, true, retention->keep_us, "--keep");
	if (!err && retention->has_archive)
		err = tier_shrink(shrink, false, retention->keep_archive_us, "--keep-archive");
	else if (!err)
		err = tier_shrink(shrink, false, retention->keep_us, "--keep");
	return err || within_bounds(shrink) ? err : -ENOSPC;
}

int retention_apply(const struct retention *retention, int directory,
		    const struct part_name *present, int64_t now_us, uint64_t coming,
		    struct retention_log *log)
{
	struct part_list list = {0};
	int err;

	if (!retention->keep_us && !retention->keep_archive_us && !retention->keep_bytes &&
	    !retention->keep_free_tenths)
		return 0;
	if (log->hour_us != present->hour_us)
		log->aged = 0;
	log->hour_us = present->hour_us;
	err = part_list_read(&list, directory);
	if (!err)
		err = list_shrink(&(struct shrink){.retention = retention,
						   .log = log,
						   .list = &list,
						   .directory = directory,
						   .present = present,
						   .now_us = now_us,
						   .coming = coming});
	part_list_done(&list);
	return err;
}

uint64_t retention_part_bytes(const struct retention *retention)
{
	return (uint64_t)retention->keep_bytes / PARTS_KEPT_LEAST;
}

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
