/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hostile bytes in place of cached programs: refused, or a set that is within its bounds and is
 * written as the same bytes. The input is a file without its head, which is added: no fuzzer
 * guesses a checksum. */
#include "base/index.h"
#include "base/text.h"
#include "fuzz_file.h"
#include "kernel/program_set.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length);

static void set_check(const struct program_set *set)
{
	int fds[PROGRAM_MAPS_MAX];
	struct program_set copy = *set;

	must(set->map_count <= PROGRAM_MAPS_MAX && set->program_count <= GROUP_COUNT, "counts");
	for (int i = 0; i < PROGRAM_MAPS_MAX; i++)
		fds[i] = 1000 + i;
	program_set_refer(&copy, fds); /* would read beyond fds */
	for (uint32_t i = 0; i < set->map_count; i++)
		must(program_set_map(set, set->maps[i].name) >= 0, "a map has a name");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length)
{
	const uint64_t size = length, checksum = hash_bytes(bytes, length);
	struct text whole = {0}, again = {0};
	struct program_set set;
	size_t used;

	if (!program_set_read(bytes, length, &set, &used))
		program_set_done(&set);
	text_add(&whole, "tsnapBP1", 8);
	text_add(&whole, (const char *)&size, sizeof(size));
	text_add(&whole, (const char *)&checksum, sizeof(checksum));
	text_add(&whole, (const char *)bytes, length);
	if (!program_set_read(whole.bytes, whole.length, &set, &used)) {
		must(used == whole.length, "all of it is used");
		program_set_write(&set, &again);
		must(again.length == whole.length, "the same length is written");
		set_check(&set);
		program_set_done(&set);
	}
	text_done(&whole);
	text_done(&again);
	return 0;
}
