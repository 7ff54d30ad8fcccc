/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Several samplers on one set of probes: the maps, programs and links of a compile_result, pinned
 * in a private directory of a bpf file system, and what is needed to use them without a compile.
 *
 *   map_*, prog_*, link_*   as their names say
 *   meta                    a map with one struct share_meta; pinned last: all is there
 *   owner                   only where links can't be pinned: an empty directory that is locked as
 *                           long as the starter runs, whose descriptors are what keeps them
 *
 * Every sampler reads the rings from its own position on, counts the number of the scan up itself,
 * and requests registers in a block of its own.
 */
#ifndef TSNAP_KERNEL_SHARE_H
#define TSNAP_KERNEL_SHARE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "kernel/compile.h"
#include "kernel/probe_attach.h"

/* The private directory in which samplers share: /sys/fs/bpf/tsnap-NAME, mode
 * 0700. Its users are known by their locks, which go with their process however it ends:
 *
 *   its starter     holds it alone (LOCK_EX) until all is in it
 *   each sampler    holds it with the others (LOCK_SH) as long as it runs; if it could hold it
 *                   alone at first, then it had been left
 *   a leaving one   tries to hold it alone: if it can, it was the last, and removes it
 *
 * So a directory that nobody holds is what a killed tsnap left. Nothing is ever mounted here.
 */

#define SHARE_NAME_MAX 32

struct share_directory {
	char name[SHARE_NAME_MAX + 1]; /* "": none, and the rest has no meaning */
	int root, fd;  /* descriptors of the file system, and of the directory in it */
	bool was_left; /* nobody held it when it was joined */
};

/* True for a name of letters, digits, - and _: the kernel keeps names with dots for itself. */
bool share_name_valid(const char *name);

/* Makes the directory and holds it alone. What a killed tsnap left under that name is removed
 * first, and *cleared set. -errno with e: somebody is in it, it is not ours, or there is no such
 * file system (exit code 77). */
int share_directory_make(struct share_directory *directory, const char *name, bool *cleared,
			 struct error *e);

/* Calls each for every share of this user, with the pids of its holders ("" for none). */
void share_directories_walk(void (*each)(void *to, const char *name, const char *holders),
			    void *to);

struct share {
	struct share_directory directory; /* zeroed: nothing is shared */
	bool needs_owner;		  /* links are not pinned, and owner is a descriptor */
	bool is_owner;
	bool adopted;
	int owner;
};

/* Pins all of it, after share_directory_make(); then others can attach. pin_links: the kernel can
 * pin links. 0 or -errno with e. */
int share_publish(struct share *share, const struct host *host,
		  const struct compile_result *compiled, const struct probe_plan *plan,
		  const struct probe_links *links, bool pin_links, struct error *e);
/* Takes over what another tsnap published; *compiled (initialised, without layout, and with own_tid
 * 0) is the caller's to compile_result_done(), also after a failure. 0, -EINTR, or -errno with e:
 * nothing there, not complete, or of another tsnap or pid namespace. */
int share_adopt(struct share *share, const char *name, const struct host *host,
		struct compile_result *compiled, struct probe_plan *plan, struct error *e);
/* True if the programs still run. */
bool share_alive(const struct share *share);
/* Leaves the share; the last one to leave removes all of it. */
void share_leave(struct share *share);

#endif
