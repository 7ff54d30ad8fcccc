/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A hostile recording: whatever is in its frames, it is replayed to its end or refused with a
 * message. Heads get the right checksum first, so that their contents are tried, too. */
#include "fuzz_file.h"
#include "base/names.h"
#include "recording/frame.h"
#include "recording/recording.h"
#include "sample/sample.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

#define CHECK_AT 56
#define FROM_US 1795208399500000ll

static const struct filter all = {.all_states = true};

static void heads_mend(uint8_t *bytes, size_t length)
{
	uint8_t *end = bytes + length, *at = bytes;

	while ((at = memmem(at, (size_t)(end - at), FRAME_SIGNATURE, strlen(FRAME_SIGNATURE)))) {
		uint64_t hash = 0xcbf29ce484222325u;
		uint8_t *head = at - 8;

		at++;
		if (head < bytes || end - head < FRAME_HEAD_BYTES)
			continue;
		for (size_t i = 0; i < CHECK_AT; i++)
			hash = (hash ^ head[i]) * 0x100000001b3u;
		for (size_t i = 0; i < 8; i++)
			head[CHECK_AT + i] = (uint8_t)(hash >> 8 * i);
	}
}

static void replay(const char *path, int64_t from_us, int64_t until_us)
{
	const char *const paths[] = {path, NULL};
	const struct recording_part part = {.from_us = from_us, .until_us = until_us};
	struct source *source;
	struct source_status status;
	struct error e = {0};
	struct scan scan;
	int more;

	if (recording_open(paths, &part, &all, ~0ull, &source, &e)) {
		must(e.line[0], "an error has words");
		error_done(&e);
		return;
	}
	while ((more = source->next(source, &scan, &e)) > 0)
		for (size_t i = 0; i < scan.count; i++)
			must((from_us == ABSENT || scan.samples[i].scan.time_us >= from_us) &&
				     (until_us == ABSENT ||
				      scan.samples[i].scan.time_us < until_us),
			     "samples are of the part");
	must(!more || e.line[0], "an error has words");
	source->describe(source, &status);
	source->close(source);
	error_done(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	uint8_t *mended = malloc(length + 1);
	char path[FUZZ_PATH_SIZE];
	int fd;

	must(mended != NULL, "memory");
	memcpy(mended, bytes, length);
	heads_mend(mended, length);
	fd = fuzz_file_make(mended, length, path);
	replay(path, ABSENT, ABSENT);
	replay(path, FROM_US, FROM_US + 1000000); /* within the time of the corpus' files */
	close(fd);
	free(mended);
	names_clear();
	return 0;
}
