/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pages of another process that are in memory, by its /proc/PID/pagemap (bit 63, since 2.6.25; open
 * to PTRACE_MODE_READ since 4.2). Only these are read: the kernel would fault in any other page for
 * tsnap, which can take forever, from a swap device that hangs, or from a file system or
 * userfaultfd(2) of the process itself. A page can still be evicted between the check and the read.
 */
#ifndef TSNAP_BASE_PRESENT_PAGES_H
#define TSNAP_BASE_PRESENT_PAGES_H

#include <stddef.h>
#include <stdint.h>

/* Returns how many of the bytes from address on are in memory, up to the first that is not.
 * pagemap: an open descriptor. */
size_t present_bytes(int pagemap, uint64_t address, size_t bytes);

/* Pages from `first` on of which one read found whether they are in memory. Zeroed: none. */
#define PRESENT_PAGES 32

struct present_pages {
	uint64_t first, count;
	uint64_t entries[PRESENT_PAGES];
};

/* Does as present_bytes(), by what is known in pages; what is not is read, together with the pages
 * behind it if it is more than one page. */
size_t present_bytes_near(int pagemap, struct present_pages *pages, uint64_t address, size_t bytes);

#endif
