/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the runtime of a Go program counts, by the program's table of symbols: how many goroutines
 * there were at once (runtime.allglen: those that ended are used again, so it grows only while more
 * are alive than ever before; src/runtime/proc.go), and its stops for collections of garbage
 * (runtime.memstats; src/runtime/mstats.go). 64-bit programs that are not stripped.
 *
 * Where memstats has the stops differs from version to version. Their order does not, from Go 1.13
 * to 1.25: last_gc_unix, pause_total_ns, pause_ns[256], pause_end[256], numgc. They are found by
 * what must hold of them: the last end is last_gc_unix, and the pauses add up to the total.
 */
#ifndef TSNAP_APPS_GO_COUNTERS_H
#define TSNAP_APPS_GO_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cache.h"

struct parser;

#define GO_MEMSTATS_MAX 65536

/* Addresses in a process; 0: not known. */
struct go_place {
	uint64_t count; /* runtime.allglen */
	uint64_t memstats, memstats_bytes;
	uint64_t pauses; /* of last_gc_unix in it; found once there was a collection */
};

struct go_counters {
	int64_t goroutines;
	int64_t stopped_us, collections; /* since the program began; 0: none was found */
};

/* Finds the pauses in the bytes of memstats. False: they are not there, or were just written. Pure.
 */
bool go_pauses_find(const void *bytes, size_t length, size_t *at);

/* Files that are known, by device and inode. */
void go_files_init(struct cache *files);
/* Finds where a process has its counters. False: it runs no Go program, or shows nothing. */
bool go_place_find(struct go_place *place, struct cache *files, const char *root, int64_t pid,
		   struct parser *parser, int64_t now_ns);
bool go_counters_read(struct go_place *place, const char *root, int64_t pid,
		      struct go_counters *counters);

#endif
