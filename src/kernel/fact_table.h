/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Features of this kernel and this build, found by trying, each at most once and only when somebody
 * asks. A new fact is a row here; --check prints the rows, --without pretends that one is missing,
 * or (kernel-4.9) all that came after a release. */
#ifndef TSNAP_KERNEL_FACT_TABLE_H
#define TSNAP_KERNEL_FACT_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "kernel/fact_try.h"

enum fact {
	FACT_BPF,
	FACT_RAW_TRACEPOINT,
	FACT_TYPED_TRACEPOINT,
	FACT_TRACEPOINT,
	FACT_KPROBE,
	FACT_RUN_ON_CPU,
	FACT_PERF_CLOCK,
	FACT_CPU_SAMPLES,
	FACT_MAP_BATCH,
	FACT_THREAD_SLOTS,
	FACT_ASK_REGISTERS,
	FACT_READ_INTO_MAP,
	FACT_PROBE_READ_KERNEL,
	FACT_PROBE_READ_USER,
	FACT_CGROUP_ID,
	FACT_LONG_PROGRAM,
	FACT_BPF_STATS,
	FACT_PINNED_LINKS,
	FACT_BLOCK_IO_START,
	FACT_TYPED_BLOCK_IO_START,
	FACT_BLOCK_MERGE,
	FACT_BLOCK_QUEUE_ARGUMENT,
	FACT_KERNEL_LOCKS,
	FACT_BTF,
	FACT_KHEADERS,
	FACT_UNWINDER,
	FACT_COUNT,
};

#define FACT_SINCE(major, minor) ((major) << 8 | (minor))

struct fact_row {
	const char *name; /* name for --without */
	const char *help;
	uint32_t since;	    /* first release with it, FACT_SINCE(); backports come earlier; 0: not
				 the kernel's */
	const char *remedy; /* step that makes it available; NULL: only another kernel does */
	/* 0: there; -errno: not there, and why (FACT_WHY_SIZE bytes) may say more than errno. */
	int (*try)(char *why);
};

extern const struct fact_row fact_rows[FACT_COUNT];

enum fact_state {
	FACT_UNTRIED,
	FACT_THERE,
	FACT_MISSING,
	FACT_FORBIDDEN, /* this user may not try: the kernel may well have it */
	FACT_TAKEN_AWAY,
};

struct facts {
	enum fact_state state[FACT_COUNT];
	char why[FACT_COUNT][FACT_WHY_SIZE];
};

/* True if the kernel has it; tries on the first call. */
bool fact_has(struct facts *facts, enum fact fact);
/* list: names with commas between, NULL for none; "kernel-4.14" names all facts that came
 * after 4.14. Facts named are missing from now on. -EINVAL: unknown name, a usage error that lists
 * the names. */
int facts_take_away(struct facts *facts, const char *list, struct error *e);

#endif
