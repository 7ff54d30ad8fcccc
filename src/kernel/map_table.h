/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The maps of the BPF text that the sampler uses, and how their sizes follow from the host. */
#ifndef TSNAP_KERNEL_MAP_TABLE_H
#define TSNAP_KERNEL_MAP_TABLE_H

#include <stddef.h>

/* Addresses in a struct bpf_stacktrace, whose rest is 0 (PERF_MAX_STACK_DEPTH of the kernel's
 * linux/perf_event.h). */
#define KERNEL_CHAIN_MAX 127

enum kernel_map {
	KERNEL_MAP_THREADS,
	KERNEL_MAP_SLOTS, /* slot of each thread, where threads have slots */
	KERNEL_MAP_FREE,  /* free slots */
	KERNEL_MAP_NEAR,  /* shortcut to slots, by tid */
	KERNEL_MAP_COUNTERS,
	KERNEL_MAP_SAMPLING,
	KERNEL_MAP_CHANGED,
	KERNEL_MAP_SCAN_TIME,
	KERNEL_MAP_TICKS,
	KERNEL_MAP_LOOK_AT, /* addresses at which a look at a CPU reads, by thread */
	KERNEL_MAP_MEMORY,  /* what it read there */
	KERNEL_MAP_REQUESTS,
	KERNEL_MAP_LATENCY,	/* control of --trace */
	KERNEL_MAP_LATENCY_ONE, /* histograms of --trace, in turns */
	KERNEL_MAP_LATENCY_TWO,
	KERNEL_MAP_PROCESSES,
	KERNEL_MAP_STACK_REQUESTS,
	KERNEL_MAP_BLOCK,     /* requests in flight */
	KERNEL_MAP_DISKS,     /* how long those took that have ended */
	KERNEL_MAP_SLOTS_ONE, /* histograms that are found without a search */
	KERNEL_MAP_SLOTS_TWO,
	KERNEL_MAP_EVENTS,
	KERNEL_MAP_KEPT,	 /* perf events for the stacks that switches keep */
	KERNEL_MAP_WINDOW,	 /* capture window, in which they do */
	KERNEL_MAP_LOOKED,	 /* perf events for the stacks that a look at a CPU takes */
	KERNEL_MAP_WAKES,	 /* wake-ups that end waits which a scan has seen */
	KERNEL_MAP_CONNECTIONS,	 /* those that have not ended */
	KERNEL_MAP_WORK,	 /* idle keys and pieces of work, by slot */
	KERNEL_MAP_TEXTS,	 /* texts that --probe and --context read */
	KERNEL_MAP_PROBE_STACKS, /* stacks of events of --probe, by number */
	KERNEL_MAP_IRQS,	 /* interrupts of each CPU */
	KERNEL_MAP_HELD,	 /* values that threads hold between two probes */
	KERNEL_MAP_COUNT
};

enum map_unit { ENTRIES_FIXED, ENTRIES_PER_THREAD, ENTRIES_PER_CPU, MAP_UNIT_COUNT };

struct kernel_map_row {
	const char *name;   /* name in the BPF text, and as the kernel shows it */
	size_t leaf_bytes;  /* size of a value */
	enum map_unit unit; /* what its number of entries is a multiple of */
};

extern const struct kernel_map_row kernel_map_rows[KERNEL_MAP_COUNT];

#endif
