/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Mappings of code in a process, from /proc/TID/maps; they are kept, and read again when an address
 * is in none of them or they got old. Files are found when first met: through /proc/TID/map_files,
 * which also leads to deleted and replaced files and to those of other mount namespaces, else below
 * /proc/TID/root. Anonymous code that lies where a file mapped around it has its code is that
 * file's: programs move their code to memory with huge pages. Other anonymous code is a JIT's. */
#ifndef TSNAP_UNWIND_PROCESS_MAPS_H
#define TSNAP_UNWIND_PROCESS_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cache.h"
#include "unwind/module_table.h"
#include "unwind/thread_memory.h"

#define MAPPINGS_MAX 16384 /* mappings with code, of one process */

struct mapping {
	uint64_t start, end, offset, device, inode; /* device: major << 32 | minor */
	uint64_t serial; /* serial of the module: another one may get its number */
	uint32_t module; /* MODULE_NONE: not looked at yet, or known by nobody */
	uint32_t above;	 /* of anonymous code: index in struct process_maps.files */
	bool executable;
	bool looked_at;
	bool jit;   /* code that belongs to no file, as far as is known */
	char *path; /* NULL: anonymous memory */
};

struct process_maps {
	struct cache_entry entry; /* key: pid */
	int64_t read_ns, next_read_ns;
	uint32_t program;	  /* stack_thread.program when the maps were read */
	struct mapping *mappings; /* mappings in order of address */
	size_t count, capacity;
	/* Mappings of files, in order of address. Those that surround anonymous code are kept:
	 * files[above] and the one before it. */
	struct mapping *files;
	size_t file_count, file_capacity, file_needed;
	struct module_table *modules; /* counts the mappings; NULL: none does */
	uint64_t uprobes;      /* where functions with uretprobes return to; 0: there are none */
	int64_t start_read_ns; /* read_ns of the maps at which stack_start was read */
	uint64_t stack_start;
};

/* A thread to walk. */
struct stack_thread {
	int64_t pid, tid;
	int64_t start_ns; /* start time; with tid, the thread's identity */
	int64_t now_ns;	  /* monotonic */
	uint32_t program; /* program of the process' first thread: changes with each exec */
};

/* Parses one line of maps. False where it is none, or reserves addresses without access to them.
 * *path: within line, NUL-terminated. */
bool mapping_parse(char *line, struct mapping *mapping, char **path);

/* Opens the file of a mapping that has one. Returns a descriptor, or -errno. */
int mapping_open(const struct mapping *mapping, const char *proc_root, int64_t tid);

void process_maps_cache_init(struct cache *processes);

/* Lets go of the files of processes that have ended. */
void process_maps_drop_ended(struct cache *processes, const char *proc_root);

/* Returns the process' maps, read anew if they are not known, of another program, or older than 5
 * s. NULL where they can't be read; *err (-errno) says why. */
struct process_maps *process_maps_get(struct cache *processes, const char *proc_root,
				      const struct stack_thread *thread, int *err);
/* Reads the maps again, unless that was done just now. Returns whether they were read. */
bool process_maps_again(struct process_maps *maps, const char *proc_root,
			const struct stack_thread *thread);

/* Returns the start of the first thread's stack when its program began, or 0. */
uint64_t process_stack_start(struct process_maps *maps, const char *proc_root,
			     const struct stack_thread *thread);

/* Returns the mapping at an address, its file found, or NULL. */
const struct mapping *mapping_find(struct process_maps *maps, const char *proc_root,
				   const struct stack_thread *thread, struct module_table *modules,
				   struct thread_memory *memory, uint64_t address);

#endif
