/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Costs of tsnap itself, for --self: filled by the live source (live_self.c), shown by
 * render/render_self.c. Numbers are ABSENT where they are not known. */
#ifndef TSNAP_SAMPLE_SELF_COST_H
#define TSNAP_SAMPLE_SELF_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SELF_PROGRAMS_MAX 36
#define SELF_MAPS_MAX 40

/* Costs of a BPF program. Names are static words of the probe table. */
struct self_program {
	const char *name, *kind;
	int64_t ns, runs;    /* since the program was loaded */
	int64_t skipped;     /* runs that the kernel skipped since then: the CPU was in the program
				already */
	int64_t jited_bytes; /* size of the machine code; 0: it is interpreted */
};

struct self_map {
	const char *name;
	int64_t kernel_bytes;
};

struct self_cost {
	bool requested; /* costs are requested; false: nothing else is filled */
	int64_t at_ns;	/* monotonic time; in a difference, the time between */
	int64_t cpu_ns; /* CPU time of this process */
	int64_t scans;	/* scans since the source was opened */
	/* time in which switches kept stacks, and how many did; since the source was opened, too */
	int64_t window_ns, kept_count;
	/* values at present, or of a single event */
	int64_t start_cpu_ns, child_cpu_ns; /* time to get ready: here, and in the compile child */
	int64_t resident_bytes, resident_most_bytes;
	int64_t programs_bytes;	   /* kernel memory of all programs */
	const char *uncounted_why; /* why ns and runs are absent, static words; NULL: counted */
	struct self_program programs[SELF_PROGRAMS_MAX];
	struct self_map maps[SELF_MAPS_MAX];
	size_t program_count, map_count;
};

/* Subtracts `before`, of the same source, from now, so that `now` has what is new since then. */
void self_cost_subtract(struct self_cost *now, const struct self_cost *before);

/* Sum of all programs. A number that is not known of each program is ABSENT. */
struct self_program self_cost_programs(const struct self_cost *cost);
/* Kernel memory of all maps and programs. */
int64_t self_cost_kernel_bytes(const struct self_cost *cost);

/* Growth of a count. If it is less than before, it began anew. */
static inline int64_t counted_since(int64_t now, int64_t before)
{
	return now < before ? now : now - before;
}

#endif
