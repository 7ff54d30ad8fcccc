/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/retention.h"
#include "recording/part_list.h"

#include <errno.h>
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

bool retention_of_fine(enum record_kind kind)
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
