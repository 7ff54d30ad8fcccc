/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A long recording made of a short one, written as `tsnap -o DIR` writes one.
 *
 * repeated DIR FROM SAMPLES: the rows of the recording FROM, of all kinds, again and again, each
 * time later by its length in whole minutes, until at least SAMPLES samples are in DIR. A frame
 * has the rows of 5 s, as a recorder's. Prints the number of samples.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "base/quantity.h"
#include "recording/recorder_part.h"
#include "sample/sample.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FLUSH_US (5 * US_PER_SECOND)
#define MINUTE_US (60 * US_PER_SECOND)
#define ISO_LENGTH strlen("2026-11-30T09:28:20.894652Z")

/* The rows of a kind: lines that begin with a time in quotes, the header line is apart. */
struct kind_rows {
	struct text rows;
	size_t at;    /* offset of the next row to write */
	int times;    /* times that each row begins with: findings have two */
	size_t lines; /* rows written */
};

struct repeated {
	struct recorder_part part;
	struct kind_rows kinds[RECORD_KIND_COUNT];
	int64_t first_us, last_us; /* of the rows of scans */
};

static int64_t row_time(const char *row)
{
	char iso[CLOCK_ISO_SIZE] = "";
	int64_t time_us = 0;

	memcpy(iso, row + 1, ISO_LENGTH);
	if (*row != '"' || time_iso_read(iso, &time_us)) {
		fprintf(stderr, "a row without a time: %.60s\n", row);
		exit(1);
	}
	return time_us;
}

/* Reads all rows of a file. */
static void file_read(struct repeated *repeated, int directory, const struct part_name *name)
{
	struct kind_rows *kind = &repeated->kinds[name->kind];
	struct frame_losses losses = {0};
	struct frame_reader *reader = frame_reader_new(name->kind, ABSENT, ABSENT, &losses);
	struct error e = {0};
	char path[PART_NAME_SIZE], *bytes = memory_get(1u << 20), *end;
	struct text read = {0};
	ssize_t got;
	int fd;

	part_name_write(name, path);
	fd = openat(directory, path, O_RDONLY);
	frame_reader_begin(reader, fd, path);
	while ((got = frame_reader_read(reader, bytes, 1u << 20, &e)) > 0)
		text_add(&read, bytes, (size_t)got);
	end = strchr(text_string(&read), '\n');
	if (fd < 0 || got < 0 || !end) {
		fprintf(stderr, "%s: %s\n", path, got < 0 ? e.line : "can't be read");
		exit(1);
	}
	free(repeated->part.headers[name->kind]);
	repeated->part.headers[name->kind] =
		memory_text(text_string(&read), (size_t)(end + 1 - read.bytes));
	kind->times = strncmp(read.bytes, "timestamp,begin,", 16) ? 1 : 2;
	text_add(&kind->rows, end + 1, read.length - (size_t)(end + 1 - read.bytes));
	text_done(&read);
	frame_reader_free(reader);
	close(fd);
	free(bytes);
}

static int recording_read(struct repeated *repeated, const char *path)
{
	int directory = open(path, O_RDONLY | O_DIRECTORY);
	struct part_list list = {0};

	if (directory < 0 || part_list_read(&list, directory) || !list.count)
		return -1;
	repeated->part.name = list.files[0].name;
	for (size_t i = 0; i < list.count; i++)
		file_read(repeated, directory, &list.files[i].name);
	part_list_done(&list);
	close(directory);
	return 0;
}

/* Adds the rows of a kind up to a time of the original, later by that much. */
static void rows_add(struct repeated *repeated, int kind, int64_t until_us, int64_t later_us)
{
	struct kind_rows *from = &repeated->kinds[kind];
	struct text rows = {0};
	int64_t time_us = 0;

	while (from->at < from->rows.length) {
		const char *row = from->rows.bytes + from->at, *end = strchr(row, '\n') + 1;

		time_us = row_time(row);
		if (time_us >= until_us)
			break;
		from->at += (size_t)(end - row);
		from->lines++;
		for (int i = 0; i < from->times; i++) {
			char iso[CLOCK_ISO_SIZE];

			clock_format_iso(row_time(row) + later_us, iso);
			text_add_format(&rows, "\"%s\",", iso);
			row += ISO_LENGTH + 3;
		}
		text_add(&rows, row, (size_t)(end - row));
		/* a frame's head has the times of its first and last row */
		recorder_part_add(&repeated->part, (enum record_kind)kind, time_us + later_us,
				  &rows);
		text_clear(&rows);
	}
	text_done(&rows);
}

static int repeat(struct repeated *repeated, int64_t later_us)
{
	struct recorder_part *part = &repeated->part;
	int err = 0;

	for (int kind = 0; kind < RECORD_KIND_COUNT; kind++)
		repeated->kinds[kind].at = 0;
	for (int64_t at_us = repeated->first_us; !err && at_us <= repeated->last_us;
	     at_us += FLUSH_US) {
		err = recorder_part_begin(part, at_us + later_us);
		for (int kind = 0; kind < RECORD_KIND_COUNT; kind++)
			rows_add(repeated, kind,
				 at_us + FLUSH_US > repeated->last_us ? INT64_MAX
								      : at_us + FLUSH_US,
				 later_us);
		if (!err)
			err = recorder_part_flush(part, at_us + later_us);
	}
	return err;
}

int main(int argc, char **argv)
{
	long long wanted = argc == 4 ? strtoll(argv[3], NULL, 10) : 0;
	struct repeated *repeated = memory_get(sizeof(*repeated));
	const struct text *scans = &repeated->kinds[RECORD_SCANS].rows;
	size_t last;
	int err;

	if (wanted <= 0) {
		fprintf(stderr, "usage: repeated DIR FROM SAMPLES\n");
		return 2;
	}
	err = recording_read(repeated, argv[2]);
	if (!err && (mkdir(argv[1], 0755) || !scans->length))
		err = -1;
	if (err) {
		perror(argv[2]);
		return 1;
	}
	repeated->part.directory = open(argv[1], O_RDONLY | O_DIRECTORY);
	repeated->part.rights = (struct file_rights){getegid(), 0640};
	for (last = scans->length - 1; last && scans->bytes[last - 1] != '\n';)
		last--;
	repeated->first_us = row_time(scans->bytes);
	repeated->last_us = row_time(scans->bytes + last);
	for (int64_t i = 0; !err && repeated->kinds[RECORD_SAMPLES].lines < (size_t)wanted; i++)
		err = repeat(repeated,
			     i * (((repeated->last_us - repeated->first_us) / MINUTE_US + 1) *
				  MINUTE_US));
	recorder_part_done(&repeated->part);
	if (err) {
		fprintf(stderr, "%s: %s\n", argv[1], strerror(-err));
		return 1;
	}
	return printf("%zu\n", repeated->kinds[RECORD_SAMPLES].lines) < 0;
}
