/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Costs of programs and maps, as the kernel reports them. */
#ifndef TSNAP_KERNEL_BPF_COST_H
#define TSNAP_KERNEL_BPF_COST_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/feature_table.h"

/* Cost of a program since it was loaded. -1: this kernel does not report it. */
struct program_cost {
	int64_t ns, runs;    /* time and runs while the kernel counted (5.1) */
	int64_t skipped;     /* runs skipped because the CPU was in the program already (5.12) */
	int64_t jited_bytes; /* bytes of machine code; 0: interpreted, or this user may not know */
};

/* Reads the cost of a program. 0 or -errno. */
int program_cost_read(int program, struct program_cost *cost);

/* Returns the number after a key, "map_type:", of a map or program of this process in its fdinfo
 * (4.13; bpf(2)), or -errno. */
int64_t bpf_fdinfo_number(int descriptor, const char *key);
/* Returns the kernel memory of a map or program of this process ("memlock:" in /proc/PID/fdinfo,
 * since 4.10), or -errno. */
int64_t bpf_memory_bytes(int descriptor);

/* Has the kernel count the runs of all BPF programs until the descriptor that is returned is
 * closed, also by the end of a killed process. -errno: it can't, and *why gets static words, or
 * NULL where the kernel counts already (sysctl kernel.bpf_stats_enabled). */
int bpf_stats_open(struct features *features, const char **why);

#endif
