/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A hostile offsets file: refused with a message, or a layout that is written and read again as the
 * same. */
#include "fuzz_file.h"
#include "kernel/field_table.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static int offsets_read(const void *bytes, size_t length, struct field_layout *layout)
{
	struct error e = {0};
	char path[FUZZ_PATH_SIZE];
	int fd = fuzz_file_make(bytes, length, path), result;

	result = field_offsets_read(path, "6.1.0-test", "x86_64", layout, &e);
	must(!result || e.line[0], "an error has words");
	close(fd);
	error_done(&e);
	return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	struct field_layout layout, again;
	struct text text = {0};

	memset(&layout, 0, sizeof(layout));
	memset(&again, 0, sizeof(again));
	if (offsets_read(bytes, length, &layout))
		return 0;
	field_offsets_write(&layout, "6.1.0-test", "x86_64", &text);
	must(!offsets_read(text.bytes, text.length, &again), "what tsnap wrote can be read");
	must(!memcmp(&layout, &again, sizeof(layout)), "it is the same");
	text_done(&text);
	return 0;
}
