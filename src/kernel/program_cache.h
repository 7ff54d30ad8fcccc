/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The cache of compiled programs, so that a start that finds its own loads no compiler: a directory
 * that only root may write to. And files of --write-programs.
 *
 * A set is found by what is known before types are: `wanted`, the BPF text without a layout of
 * kernel types, and `how`, what else decides what a compile makes (sources of types, libbcc, this
 * build of tsnap). Whether it is right is decided by `text`: the whole text with the set's own
 * layout and with what this start has found out about the host. In a directory a set is the
 * kernel's only if the kernel build is the same, too, and the file is root's alone, whole and
 * undamaged; anything else is as good as no file.
 */
#ifndef TSNAP_KERNEL_PROGRAM_CACHE_H
#define TSNAP_KERNEL_PROGRAM_CACHE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "kernel/program_set.h"

#define PROGRAM_CACHE_PATH "/var/cache/tsnap"
#define PROGRAM_CACHE_FILES 48
#define PROGRAM_CACHE_BYTES (16u << 20)
#define PROGRAM_CACHE_WHY_SIZE 256

/* Names the running kernel's build: its release and version, and hashes of what else is its own. */
void kernel_build_read(char build[KERNEL_BUILD_SIZE]);

/* A hash of this program's own build id. */
uint64_t own_build_hash(void);

/* Finds a set with the keys of `like`: kernel, wanted, how, near_threads. 0: *set is the caller's
 * to program_set_done(). -ENOENT: there is none; why gets a reason, if that is not simply that
 * nobody put it there, else "". */
int program_cache_get(const char *directory, const struct program_set *like,
		      struct program_set *set, char *why);
/* Puts a set, of which bytes are the form, into the cache, and removes those used longest ago
 * beyond the limits. 0, or -errno with why. */
int program_cache_put(const char *directory, const struct program_set *set,
		      const struct text *bytes, char *why);

/* Finds the set of a file of --write-programs for this kernel and `wanted`, of several the one that
 * was made for the nearest number of threads. 0: *set is the caller's; or -errno with e. */
int program_file_find(const char *path, const struct program_set *like, struct program_set *set,
		      struct error *e);
/* Adds a set to a file, in place of one with the same keys. 0, or -errno with e. */
int program_file_add(const char *path, const struct program_set *set, const struct text *bytes,
		     struct error *e);

#endif
