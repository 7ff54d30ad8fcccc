/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TSNAP_SANDBOX_SANDBOX_USE_H
#define TSNAP_SANDBOX_SANDBOX_USE_H

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
	SANDBOX_PARSES = 1 << 8,     /* used alone: bytes that are given to it (src/parser) */
};

#endif
