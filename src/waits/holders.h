/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the process that has an end of a pipe, or a socket, by going through /proc/PID/fd of all
 * processes, as nothing in the kernel leads from a pipe to its holder. That takes long, so it is
 * done in pieces, only for ends that were asked for, and what was found is kept.
 *
 * Processes near the one that asks come first: processes that were started together have ids that
 * follow each other.
 */
#ifndef TSNAP_WAITS_HOLDERS_H
#define TSNAP_WAITS_HOLDERS_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cache.h"

#define HOLDERS_MAX 16384 /* links that are asked for at a time */

/* Open mode of a descriptor, as the kernel shows it in the mode of its link. */
enum holder_mode { HOLDER_ANY, HOLDER_READS, HOLDER_WRITES, HOLDER_MODE_COUNT };

struct holders {
	const char *root;
	struct cache wanted;
	size_t pending;
	/* position of the walk */
	DIR *processes, *descriptors;
	int64_t pid;
	uint64_t round; /* walks ended */
	/* the present scan, and the time that the search has left in it */
	int64_t scan_ns, left_ns;
};

void holders_init(struct holders *holders, const char *root);
void holders_sweep(struct holders *holders, int64_t now_ns, int64_t idle_ns);
void holders_done(struct holders *holders);

/* The process that has a descriptor of such a mode whose link reads so ("pipe:[12]"), other than
 * the asking one where there is another. 0: none found. count, unless NULL: the asking one itself
 * if it has that descriptor, too, else one of those that inherited it which is in a call on it; or
 * else *count is how many processes have it, of which one is returned (1: only that one). *pending:
 * not found yet, ask again in the next scan. now_ns: monotonic, the same for all of a scan: the
 * search takes up to a sixteenth of the time between two. */
int64_t holders_find(struct holders *holders, const char *link, enum holder_mode mode,
		     int64_t requester, int64_t now_ns, uint32_t *count, bool *pending);

/* Notes that the process has that descriptor: whoever asks for its link gets it without a search.
 */
void holders_note(struct holders *holders, const char *link, int64_t pid, int fd, int64_t now_ns);

/* True if the process has a descriptor of such a mode whose link reads so, other than fd, which is
 * one of the thread's. Both ends of a pipe or a socket pair are made by one call, so that their
 * numbers are close: only such are looked at. */
bool holders_own(const char *root, int64_t pid, int64_t tid, int fd, const char *link,
		 enum holder_mode mode);

#endif
