/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/present_pages.h"

#include <sys/types.h>
#include <unistd.h>

#define PRESENT (1ull << 63)
#define PAGES_AT_ONCE 32

size_t present_bytes(int pagemap, uint64_t address, size_t bytes)
{
	const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t first = address / page_bytes, entries[PAGES_AT_ONCE];
	size_t there = 0;

	while (bytes && there < bytes) {
		uint64_t count = (address + bytes - 1) / page_bytes - first + 1, got;
		ssize_t length;

		count = count < PAGES_AT_ONCE ? count : PAGES_AT_ONCE;
		length = pread(pagemap, entries, count * sizeof(entries[0]),
			       (off_t)(first * sizeof(entries[0])));
		got = length > 0 ? (uint64_t)length / sizeof(entries[0]) : 0;
		for (uint64_t i = 0; i < count; i++) {
			if (i >= got || !(entries[i] & PRESENT))
				return there;
			there = (size_t)(++first * page_bytes - address);
		}
	}
	return there < bytes ? there : bytes;
}
