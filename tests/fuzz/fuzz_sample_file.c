/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A hostile recording: it is read to its end or refused with a message, grouped, and written in
 * every format; rows of CSV that were read are written such that the same number is read again. */
#include "base/names.h"
#include "render/renderer.h"
#include "recording/recording.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static const struct filter all = {.all_states = true};

static void must(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

static struct source *source_of(const void *bytes, size_t length, int *fd, struct error *e)
{
	const struct recording_part whole = {.from_us = ABSENT, .until_us = ABSENT};
	struct source *source = NULL;
	char path[64];

	*fd = memfd_create("fuzz", MFD_CLOEXEC);
	must(*fd >= 0 && write(*fd, bytes, length) == (ssize_t)length, "memfd");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", *fd);
	if (recording_open((const char *[]){path, NULL}, &whole, &all, ~0u, &source, e))
		must(e->line[0], "an error has words");
	return source;
}

/* Returns the number of rows read; *csv gets them as --csv writes them. */
static size_t recording_read(const void *bytes, size_t length, struct text *csv, int *failed)
{
	static struct column_list every, keys;
	struct group_table groups;
	struct tally tally = {0};
	struct grid grid = {0};
	struct text out = {0};
	struct error e = {0};
	struct source_status status;
	struct interval interval = {.grid = &grid, .tally = &tally, .status = &status, .width = 90};
	struct scan scan;
	struct source *source;
	size_t rows = 0;
	int fd, more = -1;

	for (size_t i = 0; !every.items[sample_column_count - 1] && i < sample_column_count; i++)
		column_list_add(&every, sample_columns[i].name, false, &e);
	if (!keys.count)
		column_list_add(&keys, "share,comm,filenamesum,state,arg0,weight_us,state_us", true,
				&e);
	group_table_init(&groups, &keys);
	source = source_of(bytes, length, &fd, &e);
	renderer_csv.begin(csv, &every);
	while (source && (more = source->next(source, &scan, &e)) > 0) {
		rows += scan.count;
		tally_add_silence(&tally, scan.time_us, scan.silent_us, scan.silent_us / 50000);
		tally_add(&tally, &scan);
		for (size_t i = 0; i < scan.count; i++)
			group_table_add(&groups, &scan.samples[i]);
		grid_fill_rows(&grid, &every, &scan);
		renderer_csv.add(csv, &interval);
		renderer_json.add(&out, &interval);
	}
	*failed = more < 0;
	must(!*failed || e.line[0], "an error has words");
	if (source) {
		source->describe(source, &status);
		grid_fill_groups(&grid, &groups, &tally);
		renderer_report.add(&out, &interval);
		source->close(source);
	}
	close(fd);
	group_table_done(&groups);
	grid_done(&grid);
	text_done(&out);
	error_done(&e);
	return rows;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct text csv = {0}, again = {0};
	int failed;
	size_t rows = recording_read(bytes, length, &csv, &failed);
	size_t rows_again = recording_read(csv.bytes, csv.length, &again, &failed);

	must(!failed, "what tsnap wrote can be read");
	must(rows == rows_again, "as many rows are read again");
	must(csv.length == again.length && !memcmp(csv.bytes, again.bytes, csv.length),
	     "a CSV of tsnap replays as itself");
	text_done(&csv);
	text_done(&again);
	names_clear();
	return 0;
}
