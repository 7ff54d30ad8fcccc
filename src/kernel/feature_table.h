/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Features of this kernel and this build, found by trying, each at most once and only when it is
 * needed. A new feature is a row and its trial in feature_table.c; --check prints the rows,
 * --without pretends that one is missing, or (kernel-4.9) all that came after a release. */
#ifndef TSNAP_KERNEL_FEATURE_TABLE_H
#define TSNAP_KERNEL_FEATURE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

#define FEATURE_WHY_SIZE 160
#define KERNEL_KHEADERS_PATH "/sys/kernel/kheaders.tar.xz"

enum feature {
	FEATURE_BPF,
	FEATURE_RAW_TRACEPOINT,
	FEATURE_TYPED_TRACEPOINT,
	FEATURE_TRACEPOINT,
	FEATURE_KPROBE,
	FEATURE_SWITCH_FIRST,
	FEATURE_SWITCH_SECOND,
	FEATURE_RUN_ON_CPU,
	FEATURE_PERF_CLOCK,
	FEATURE_CPU_SAMPLES,
	FEATURE_MAP_BATCH,
	FEATURE_THREAD_SLOTS,
	FEATURE_ASK_REGISTERS,
	FEATURE_READ_INTO_MAP,
	FEATURE_PROBE_READ_KERNEL,
	FEATURE_PROBE_READ_USER,
	FEATURE_LONG_PROGRAM,
	FEATURE_BPF_STATS,
	FEATURE_PINNED_LINKS,
	FEATURE_BLOCK_IO_START,
	FEATURE_TYPED_BLOCK_IO_START,
	FEATURE_BLOCK_MERGE,
	FEATURE_BLOCK_QUEUE_ARGUMENT,
	FEATURE_KERNEL_LOCKS,
	FEATURE_LOCK_SEARCH,
	FEATURE_LOCK_FAULTS,
	FEATURE_BTF,
	FEATURE_KHEADERS,
	FEATURE_UNWINDER,
	FEATURE_COUNT,
};

#define FEATURE_SINCE(major, minor) ((major) << 8 | (minor))

struct feature_row {
	const char *name; /* name for --without */
	const char *help;
	uint32_t since; /* first release with it, FEATURE_SINCE(); backports come earlier; 0: not
			     the kernel's */
	uint32_t needs; /* bits 1 << FEATURE_x: --without one of them takes this away, too */
	const char *remedy; /* step that makes it available; NULL: only another kernel does */
	/* Tries the feature. 0: there; -errno: not there, and why (FEATURE_WHY_SIZE bytes) may say
	 * more than errno. */
	int (*try)(char *why);
	const char *lacks; /* what tsnap does not offer without it; NULL: another way does */
	uint32_t instead;  /* bits of features of which one is as good; 0: none */
};

extern const struct feature_row feature_rows[FEATURE_COUNT];

enum feature_state {
	FEATURE_UNTRIED,
	FEATURE_THERE,
	FEATURE_MISSING,
	FEATURE_FORBIDDEN, /* trying is forbidden to this user: the kernel may well have it */
	FEATURE_TAKEN_AWAY,
};

struct features {
	enum feature_state state[FEATURE_COUNT];
	char why[FEATURE_COUNT][FEATURE_WHY_SIZE];
};

/* True if the kernel has it; tries on the first call. */
bool feature_has(struct features *features, enum feature feature);
/* Takes away the features in list: names with commas between, NULL for none; "kernel-4.14" names
 * all features that came after 4.14. Features named are missing from now on. -EINVAL: unknown name,
 * a usage error that lists the names. */
int features_take_away(struct features *features, const char *list, struct error *e);

#endif
