/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How much of an open file is in the page cache, how much of that is dirty, and how much was
 * evicted a moment ago, as the kernel counts it (cachestat(2), Linux 6.5 and later).
 *
 * The descriptor is copied by pidfd_getfd(2): to open the file again might break a lease, or wait
 * for a supervisor of fanotify(7), and a file that is deleted or of another mount namespace has no
 * path. Only regular files of file systems that no server and no user serves are asked about, each
 * once a second at most, for ASK_NS at most. overlayfs is none of these: its files have their pages
 * elsewhere.
 */
#ifndef TSNAP_PROC_PAGE_CACHE_H
#define TSNAP_PROC_PAGE_CACHE_H

#include <stdint.h>

#include "base/cache.h"

/* Bytes; whole pages, but for the size. ABSENT: not known. */
struct page_cache_facts {
	int64_t size, cached, dirty, evicted;
};

void page_cache_init(struct cache *files);
/* Lets descriptors be asked about, if the kernel can be: before the sandbox is entered, which must
 * have SANDBOX_CACHE. */
void page_cache_allow(void);
/* Why no file can be asked about, in static words; NULL: they can. */
const char *page_cache_lacks(void);
/* The facts of the thread's descriptor, valid until the next call. */
const struct page_cache_facts *page_cache_find(struct cache *files, const char *root, int64_t pid,
					       int64_t tid, int fd, int64_t now_ns);

#endif
