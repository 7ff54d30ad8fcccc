/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Which code lies where in a process, from /proc/TID/maps; kept, and read again when an address is
 * in none of it or it got old. Files are found when first met: through /proc/TID/map_files, which
 * also leads to deleted and replaced ones and those of other mount namespaces, else below
 * /proc/TID/root.
 */
#ifndef TSNAP_STACK_PROCESS_MAPS_H
#define TSNAP_STACK_PROCESS_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cache.h"
#include "stack/module_table.h"
#include "stack/thread_memory.h"

#define MAPPINGS_MAX 16384 /* with code, of one process */

struct mapping {
	uint64_t start, end, offset, inode;
	uint32_t module; /* MODULE_NONE: not looked at yet, or known by nobody */
	bool looked_at;
	bool jit;
	char *path;
};

struct process_maps {
	struct cache_entry entry; /* key: pid */
	int64_t start_ns, read_ns, next_read_ns;
	struct mapping *mappings; /* in order of address */
	size_t count, capacity, last;
};

/* Who is walked. */
struct stack_thread {
	int64_t pid, tid;
	int64_t start_ns; /* with tid, the thread's identity */
	int64_t now_ns;	  /* monotonic */
};

/* Reads one line of maps. False where it is none of code. *path: within line, NUL-terminated. */
bool mapping_parse(char *line, struct mapping *mapping, char **path);

void process_maps_cache_init(struct cache *processes);

/* The process' maps, read if they are not known or older than 5 s. NULL where they can't be read.
 */
struct process_maps *process_maps_get(struct cache *processes, const char *proc_root,
				      const struct stack_thread *thread);
/* Reads them again, unless that was done just now. Whether they were read. */
bool process_maps_again(struct process_maps *maps, const char *proc_root,
			const struct stack_thread *thread);

/* What lies at that address, its file found, or NULL. */
const struct mapping *mapping_find(struct process_maps *maps, const char *proc_root,
				   const struct stack_thread *thread, struct module_table *modules,
				   struct thread_memory *memory, uint64_t address);

#endif
