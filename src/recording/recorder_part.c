/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/recorder_part.h"
#include "recording/part_name.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FRAME_OVERHEAD 64 /* bytes that zstd adds to some hundred incompressible ones */

void recorder_part_add(struct recorder_part *part, enum record_kind kind, int64_t time_us,
		       const struct text *rows)
{
	if (!rows->length)
		return;
	if (!part->rows[kind].length) {
		part->first_us[kind] = part->last_us[kind] = time_us;
	} else if (time_us < part->first_us[kind]) {
		part->first_us[kind] = time_us;
	} else if (time_us > part->last_us[kind]) {
		part->last_us[kind] = time_us;
	}
	text_add(&part->rows[kind], rows->bytes, rows->length);
}

bool recorder_part_takes(const struct recorder_part *part, int64_t time_us)
{
	if (!part->begun || part->name.hour_us != part_hour(time_us))
		return false;
	for (int kind = 0; kind < RECORD_KIND_COUNT; kind++)
		if (part->rows[kind].length > PART_FRAME_BYTES)
			return false;
	return true;
}

static void files_close(struct recorder_part *part)
{
	for (int kind = 0; kind < RECORD_KIND_COUNT; kind++)
		frame_file_close(&part->files[kind]);
}

static int number_next(struct recorder_part *part)
{
	files_close(part);
	if (part->name.number >= PART_NUMBER_MAX)
		return -EOVERFLOW;
	part->fresh = true;
	part->name.number++;
	return 0;
}

static void file_name(struct recorder_part *part, enum record_kind kind, char name[PART_NAME_SIZE])
{
	part->name.kind = kind;
	part_name_write(&part->name, name);
}

int recorder_part_removed(struct recorder_part *part)
{
	char name[PART_NAME_SIZE];
	int removed = 0;

	for (int kind = 0; kind < RECORD_KIND_COUNT; kind++) {
		struct stat file;

		if (!part->files[kind].fd)
			continue;
		file_name(part, (enum record_kind)kind, name);
		if ((fstat(part->files[kind].fd, &file) ||
		     (file.st_nlink && file.st_size >= part->files[kind].end)) &&
		    (!faccessat(part->directory, name, F_OK, 0) || errno != ENOENT))
			continue;
		removed++;
		if (kind != RECORD_STACKS)
			continue;
		frame_file_close(&part->removed_stacks);
		part->removed_stacks = part->files[kind];
		part->files[kind] = (struct frame_file){0};
	}
	if (removed)
		number_next(part);
	return removed;
}

int recorder_part_begin(struct recorder_part *part, int64_t time_us)
{
	int64_t hour_us = part_hour(time_us);
	struct part_list list = {0};
	int err;

	if (part->begun && part->name.hour_us == hour_us)
		return 0;
	err = part_list_read(&list, part->directory);
	if (!err) {
		files_close(part);
		part->begun = part->fresh = true;
		part->name.hour_us = hour_us;
		part->name.number = 1;
		for (size_t i = 0; i < list.count; i++) {
			const struct part_name *there = &list.files[i].name;

			/* another user's file of the last number would leave none for ours */
			if (there->hour_us == hour_us && !strcmp(there->host, part->name.host) &&
			    list.files[i].user == geteuid() && there->number > part->name.number)
				part->name.number = there->number;
		}
	}
	part_list_done(&list);
	return err;
}

static bool has_rows(const struct recorder_part *part, int kind)
{
	return part->rows[kind].length || (kind == RECORD_STACKS && part->removed_stacks.fd);
}

static int file_open(struct recorder_part *part, enum record_kind kind)
{
	char name[PART_NAME_SIZE];
	int err;

	file_name(part, kind, name);
	err = frame_file_open(&part->files[kind], part->directory, name, kind, part->headers[kind],
			      &part->rights);
	if (!err && kind == RECORD_STACKS && part->removed_stacks.fd) {
		err = frame_file_copy(&part->files[kind], &part->removed_stacks);
		frame_file_close(err ? &part->files[kind] : &part->removed_stacks);
	}
	return err;
}

/* Opens the files of all kinds that have rows. A file that has other columns, is damaged or not
 * ours ends the part: the next one begins. */
static int files_open(struct recorder_part *part)
{
	int err = 0;

	for (int kind = 0; !err && kind < RECORD_KIND_COUNT; kind++) {
		if (!has_rows(part, kind) || part->files[kind].fd)
			continue;
		err = file_open(part, (enum record_kind)kind);
		if (err == -EEXIST) {
			err = number_next(part);
			kind = -1;
		}
	}
	return err;
}

static uint64_t files_bytes(const struct recorder_part *part)
{
	uint64_t bytes = 0;

	for (int kind = 0; kind < RECORD_KIND_COUNT; kind++)
		bytes += (uint64_t)part->files[kind].end;
	return bytes;
}

static int frames_pack(struct recorder_part *part, uint64_t *bytes)
{
	int err = 0;

	*bytes = 0;
	for (int kind = 0; !err && kind < RECORD_KIND_COUNT; kind++) {
		if (!part->rows[kind].length)
			continue;
		err = frame_file_pack(&part->files[kind], part->first_us[kind], part->last_us[kind],
				      &part->rows[kind]);
		*bytes += part->files[kind].scratch.length;
	}
	return err;
}

/* Writes the frames of all kinds. Rows that others refer to come first: if tsnap is killed
 * meanwhile, no sample is without its stack or host, and no scan without its samples. */
static int frames_put(struct recorder_part *part)
{
	static const enum record_kind order[] = {
		RECORD_HOST,   RECORD_STACKS,	     RECORD_SAMPLES,
		RECORD_SCANS,  RECORD_ARCHIVE,	     RECORD_ARCHIVE_SCANS,
		RECORD_EVENTS, RECORD_DISTRIBUTIONS, RECORD_FINDINGS,
	};
	int err = 0;

	_Static_assert(sizeof(order) / sizeof(*order) == RECORD_KIND_COUNT, "a kind is missing");
	for (size_t i = 0; !err && i < RECORD_KIND_COUNT; i++) {
		enum record_kind kind = order[i];

		if (!part->rows[kind].length)
			continue;
		err = frame_file_put(&part->files[kind]);
		if (!err)
			text_clear(&part->rows[kind]);
	}
	return err;
}

/* Limit of the bytes that files take when they are opened: header lines, and removed stacks. */
static uint64_t headers_bytes(const struct recorder_part *part)
{
	uint64_t bytes = (uint64_t)part->removed_stacks.end;

	for (int kind = 0; kind < RECORD_KIND_COUNT; kind++)
		if (has_rows(part, kind) && !part->files[kind].fd)
			bytes += FRAME_HEAD_BYTES + FRAME_OVERHEAD + strlen(part->headers[kind]);
	return bytes;
}

static int space_make(struct recorder_part *part, int64_t now_us, uint64_t bytes)
{
	return bytes ? retention_apply(&part->retention, part->directory, &part->name, now_us,
				       bytes, &part->removed)
		     : 0;
}

int recorder_part_flush(struct recorder_part *part, int64_t now_us)
{
	uint64_t most = retention_part_bytes(&part->retention), bytes = 0;
	int err = 0;

	if (!part->begun)
		return 0;
	if (most && files_bytes(part) >= most)
		err = number_next(part);
	if (!err)
		err = space_make(part, now_us, headers_bytes(part));
	if (!err)
		err = files_open(part);
	if (!err)
		err = frames_pack(part, &bytes);
	if (!err)
		err = space_make(part, now_us, bytes);
	if (err)
		return err;
	err = frames_put(part);
	if (err == -EIO) /* the disk may be bad there */
		number_next(part);
	return err;
}

void recorder_part_done(struct recorder_part *part)
{
	files_close(part);
	frame_file_close(&part->removed_stacks);
	text_done(&part->removed.words);
	for (int kind = 0; kind < RECORD_KIND_COUNT; kind++) {
		text_done(&part->rows[kind]);
		free(part->headers[kind]);
	}
}
