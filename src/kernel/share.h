/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Several samplers on one set of probes: the maps, programs and links of a compile_result, pinned
 * in a share_directory, and what is needed to use them without a compile.
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

#include "kernel/compile.h"
#include "kernel/probe_attach.h"
#include "kernel/share_directory.h"

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
