/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/present_pages.h"

#include <sys/types.h>
#include <unistd.h>

#define PRESENT (1ull << 63)
#define PAGES_AT_ONCE PRESENT_PAGES

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

size_t present_bytes_near(int pagemap, struct present_pages *pages, uint64_t address, size_t bytes)
{
	const uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	const uint64_t first = address / page_bytes;
	const uint64_t count = bytes ? (address + bytes - 1) / page_bytes - first + 1 : 0;
	uint64_t there = 0;
	ssize_t length;

	if (!count || count > PRESENT_PAGES)
		return present_bytes(pagemap, address, bytes);
	if (first < pages->first || first + count > pages->first + pages->count) {
		length = pread(pagemap, pages->entries,
			       (count > 1 ? PRESENT_PAGES : 1) * sizeof(pages->entries[0]),
			       (off_t)(first * sizeof(pages->entries[0])));
		pages->first = first;
		pages->count = length > 0 ? (uint64_t)length / sizeof(pages->entries[0]) : 0;
	}
	for (uint64_t i = first - pages->first; there < count && i < pages->count; i++, there++)
		if (!(pages->entries[i] & PRESENT))
			break;
	if (there == count)
		return bytes;
	return there ? (size_t)((first + there) * page_bytes - address) : 0;
}
