/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/retention.h"
#include "recording/part_list.h"

#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define PARTS_KEPT_LEAST 10

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

/* Removes the files of the part that begins at files[at]: those of the first tier, or all. 0 or
 * -errno. */
static int part_remove(struct part_list *list, size_t at, bool fine, int directory, uint64_t *bytes)
{
	const struct part_name part = list->files[at].name;

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
	}
	return 0;
}

struct shrink {
	const struct retention *retention;
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

/* Removes parts of a tier from the oldest on: those older than keep_us, and further ones until the
 * bounds hold. */
static int tier_shrink(struct shrink *shrink, bool fine, int64_t keep_us)
{
	const struct part_name *present = shrink->present;
	struct part_list *list = shrink->list;
	int err = 0;

	for (size_t i = 0; !err && i < list->count; i++) {
		const struct part_name *part = &list->files[i].name;
		bool old = keep_us && part->hour_us + PART_HOUR_US < shrink->now_us - keep_us;

		if (strcmp(part->host, present->host) || same_part(part, present) ||
		    (i && same_part(part, &list->files[i - 1].name) &&
		     !strcmp(part->host, list->files[i - 1].name.host)))
			continue;
		if (!old && within_bounds(shrink))
			break;
		err = part_remove(list, i, fine, shrink->directory, &shrink->bytes);
	}
	return err;
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
		err = tier_shrink(shrink, true, retention->keep_us);
	if (!err)
		err = tier_shrink(shrink, false,
				  retention->has_archive ? retention->keep_archive_us
							 : retention->keep_us);
	return err || within_bounds(shrink) ? err : -ENOSPC;
}

int retention_apply(const struct retention *retention, int directory,
		    const struct part_name *present, int64_t now_us, uint64_t coming)
{
	struct part_list list = {0};
	int err;

	if (!retention->keep_us && !retention->keep_archive_us && !retention->keep_bytes &&
	    !retention->keep_free_tenths)
		return 0;
	err = part_list_read(&list, directory);
	if (!err)
		err = list_shrink(&(struct shrink){.retention = retention,
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
