/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Capabilities of this thread, bits 1 << CAP_x. */
#ifndef TSNAP_SANDBOX_CAPABILITIES_H
#define TSNAP_SANDBOX_CAPABILITIES_H

#include <stdint.h>

#include "base/text.h"

/* Reasons to keep capabilities and calls, a bit each. */
enum sandbox_use {
	SANDBOX_SAMPLES = 1 << 0,    /* maps and perf events; memory and files of other processes */
	SANDBOX_WRITES = 1 << 1,     /* files, also below directories of other users */
	SANDBOX_STACKS = 1 << 2,     /* /proc/TID/stack, which needs CAP_SYS_ADMIN */
	SANDBOX_NAMESPACES = 1 << 3, /* sock_diag in network namespaces of others */
	SANDBOX_IDS = 1 << 4,	     /* another user id for a moment (kernel/own_switch.c) */
	SANDBOX_OLD_KERNEL = 1 << 5, /* no CAP_BPF and no CAP_PERFMON (before 5.8) */
	SANDBOX_REPLAYS = 1 << 6,    /* without SANDBOX_SAMPLES: recordings, and a terminal */
	SANDBOX_NAMES = 1 << 7,	     /* users by name, which the name service knows */
	SANDBOX_CACHE = 1 << 9,	     /* copies of descriptors (proc/page_cache.c) */
	SANDBOX_PARSES = 1 << 8,     /* used alone: bytes that are given to it (src/parser) */
};

/* Reads the permitted capabilities. 0, or -errno. */
int capabilities_held(uint64_t *held);
/* Gives up all capabilities but kept, and those that an exec could bring. 0, or -errno: all are
 * still there. */
int capabilities_keep(uint64_t kept);

/* Returns SANDBOX_OLD_KERNEL if the kernel has no CAP_BPF, or 0. */
unsigned int sandbox_kernel_use(void);

/* Returns the capabilities of held that these uses need, bits 1 << CAP_x. A wider one is among them
 * where a narrower one is not held. */
uint64_t sandbox_capabilities(unsigned int uses, uint64_t held);
/* Adds the names of capabilities, "CAP_BPF, CAP_PERFMON". */
void sandbox_capabilities_add(struct text *text, uint64_t capabilities);

#endif
