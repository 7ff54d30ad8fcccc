/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Costs of tsnap itself, for --self: filled by the live source (live_self.c), shown by
 * render/render_self.c. Numbers are ABSENT where they are not known. */
#ifndef TSNAP_SAMPLE_SELF_COST_H
#define TSNAP_SAMPLE_SELF_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SELF_PROGRAMS_MAX 18
#define SELF_MAPS_MAX 28

/* A BPF program. Names are static words of the probe table. */
struct self_program {
	const char *name, *kind;
	int64_t ns, runs;    /* since it was loaded */
	int64_t skipped;     /* runs that the kernel skipped, because the CPU was in it already;
			      * since then, too */
	int64_t jited_bytes; /* machine code; 0: it is interpreted */
};

struct self_map {
	const char *name;
	int64_t kernel_bytes;
};

struct self_cost {
	bool requested; /* without it nothing else is filled */
	int64_t at_ns;	/* monotonic; of a difference, the time between */
	int64_t cpu_ns; /* CPU time of this process, */
	int64_t scans;	/* made by it: since the source was opened */
	/* time in which switches kept stacks, and how many did; since then, too */
	int64_t window_ns, kept_count;
	/* standing: as it is now, or was once */
	int64_t start_cpu_ns, child_cpu_ns; /* to get ready: here, and in the compile child */
	int64_t resident_bytes, resident_most_bytes;
	int64_t programs_bytes;	   /* kernel memory of all programs */
	const char *uncounted_why; /* no ns and no runs: static words; NULL: they are counted */
	struct self_program programs[SELF_PROGRAMS_MAX];
	struct self_map maps[SELF_MAPS_MAX];
	size_t program_count, map_count;
};

/* now: as of now; becomes what is new since before, of the same source. */
void self_cost_subtract(struct self_cost *now, const struct self_cost *before);

/* All programs as one. A number that is not known of each is ABSENT. */
struct self_program self_cost_programs(const struct self_cost *cost);
/* Kernel memory of all maps and programs. */
int64_t self_cost_kernel_bytes(const struct self_cost *cost);

/* Growth of a count. Less than before: it began anew. */
static inline int64_t counted_since(int64_t now, int64_t before)
{
	return now < before ? now : now - before;
}

#endif
