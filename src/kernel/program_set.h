/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compiled programs with all that it takes to load them without a compiler: the kernel they are of,
 * the layout of its types, maps, and instructions that name maps by index. As bytes, they are
 * in the cache and in files (kernel/program_cache.h); nothing in such bytes is trusted.
 *
 * The bytes are struct set_head, struct set_body, a struct set_map for each map, and for each
 * program a struct set_program and its instructions, all of this machine's byte order: they are of
 * use only to the same kernel build.
 */
#ifndef TSNAP_KERNEL_PROGRAM_SET_H
#define TSNAP_KERNEL_PROGRAM_SET_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "kernel/bcc_library.h"
#include "kernel/field_table.h"
#include "kernel/map_table.h"
#include "kernel/probe_table.h"

#define PROGRAM_MAPS_MAX 32
#define PROGRAM_SET_BYTES_MAX (4u << 20) /* a set with all probes and traces is 0.3 MB */
#define KERNEL_BUILD_SIZE 256

struct set_map {
	char name[32]; /* name in the BPF text */
	uint32_t type, key_bytes, value_bytes, flags;
	uint32_t entries; /* entries for each thread or CPU that there is room for, or in all */
	uint32_t unit;	  /* enum map_unit */
};

struct set_program {
	char function[60]; /* function in the BPF text */
	uint32_t count;	   /* number of its instructions */
};

struct program_set {
	char kernel[KERNEL_BUILD_SIZE]; /* kernel_build_read() of the host */
	uint64_t wanted, how, text;	/* keys: kernel/program_cache.h */
	uint32_t near_threads;		/* program_near_threads() */
	char types_source[32];		/* where the layout is from */
	struct field_layout layout;
	uint32_t map_count, program_count;
	struct set_map maps[PROGRAM_MAPS_MAX];
	struct set_program programs[GROUP_COUNT];
	struct bpf_insn *instructions[GROUP_COUNT]; /* malloced */
};

/* Adds the set as bytes. */
void program_set_write(const struct program_set *set, struct text *to);
/* Reads the set that the bytes begin with; *used: its length. 0: the caller's to
 * program_set_done(); -EINVAL: there is no whole and undamaged set, and nothing is held. */
int program_set_read(const void *bytes, size_t length, struct program_set *set, size_t *used);
void program_set_done(struct program_set *set);

/* Takes maps and programs out of a compiled module, which has maps for that many threads and CPUs.
 * fds: gets the descriptors of its maps, which stay the module's. 0; -ENOENT: the module has no
 * program for a row of the plan, or not its maps, *missing; -E2BIG: it has more than fits.
 * *keepable: every map is known well enough to be made again. */
int program_set_take(const struct bcc_library *bcc, void *module, const struct probe_plan *plan,
		     uint32_t threads, uint32_t cpus, struct program_set *set, int *fds,
		     bool *keepable, const struct probe_row **missing);

/* Makes the maps with room for that many threads and CPUs. given: for each map a descriptor to use
 * instead, or -1; these stay the caller's. fds: gets PROGRAM_MAPS_MAX descriptors. 0, or -errno
 * with *failed, and nothing is held. */
int program_set_maps_make(const struct program_set *set, uint32_t threads, uint32_t cpus,
			  const int *given, int *fds, const struct set_map **failed);

/* Returns the index of a map or program by its name; -1: the set has none. */
int program_set_map(const struct program_set *set, const char *name);
int program_set_program(const struct program_set *set, const char *function);

/* Has the instructions name maps by these descriptors; after that they are only to be loaded. */
void program_set_refer(struct program_set *set, const int *fds);

#endif
