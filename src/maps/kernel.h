/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel side as a whole: features, plan, compile, attach; and what the sampler reads. Used by
 * src/live only.
 *
 * kernel_open(): feature_table tries what the kernel offers and probe_table chooses a probe for
 * each group of facts about threads. compile forks; its child finds the offsets of kernel
 * structs (type_source), has each validated on the running kernel (layout_validate: a program reads
 * all fields at the child's own sleep, own_switch, and each must be what the kernel says of the
 * child), finds where saved registers lie on a kernel stack (registers), writes a tree of tiny
 * headers (program_text), compiles with libbcc, loads, and sends the descriptors over a socket. The
 * child alone loads libbcc (64 MB, 97 MB after a compile). The parent attaches (probe_attach):
 * closing its descriptors detaches, also when it is killed. Where the cache has the programs
 * (program_cache), the child validates the layout that they were compiled for, and loads them.
 *
 * Useless work of libbcc, which would be more than half of a start, is avoided: a table of all
 * kernel symbols (bcc_library), code that prints long arrays (BYTES_OF in maps.bpf.c), optimising
 * what clang has optimised (program_text). All this runs at nice -20 (base/priority), or a start of
 * 0.3 s would take 20 s on a fully loaded host.
 */
#ifndef TSNAP_MAPS_KERNEL_H
#define TSNAP_MAPS_KERNEL_H

#include "base/error.h"
#include "maps/changed_list.h"
#include "maps/held_reader.h"
#include "kernel/compile.h"
#include "maps/event_reader.h"
#include "kernel/feature_table.h"
#include "kernel/host.h"
#include "maps/latency_reader.h"
#include "maps/scan_time_rows.h"
#include "kernel/probe_attach.h"
#include "kernel/probe_table.h"
#include "maps/register_requester.h"
#include "kernel/share.h"
#include "maps/thread_table.h"
#include "maps/idle_keys.h"
#include "maps/wake_reader.h"

struct kernel_options {
	const char *types_choice, *btf_file, *offsets_file;	 /* each may be NULL */
	const char *without;					 /* feature names, or NULL */
	const char *cache_path, *programs_file, *write_programs; /* of compile_request */
	int64_t threads_max; /* records in the map; 0: 1.5 times the number of threads now, at least
				16384 */
	int64_t rate_hz;
	uint64_t groups;	/* GROUP_BIT()s */
	unsigned int parts;	/* bits 1 << PART_x */
	uint32_t latency_kinds; /* bits 1 << LATENCY_x of --trace */
	uint64_t slower_ns; /* threshold of --slower: events as long are reported singly; 0: none */
	const char *trace_pids, *trace_tids; /* traced ids, as in struct program_knobs */
	uint64_t latency_groups;	     /* probe groups that latency_kinds need */
	struct trace_calls trace_calls;
	const struct own_probes *own;		 /* the user's own probes; NULL: none */
	bool process_totals;			 /* forks, execs and exits are counted, too */
	const struct latency_reader *takes_over; /* latency reader of the set before, or NULL */
	const char *share;  /* NULL, or the name under which others may attach */
	const char *attach; /* NULL, or the name to attach to: its owner chose all other options */
};

struct kernel {
	struct host host;
	struct features features;
	struct probe_plan plan;
	struct compile_result compiled;
	struct probe_links links;
	int64_t clocks_looked_ns; /* last check for perf clocks that ended */
	struct thread_table table;
	struct changed_reader changed;
	struct scan_time_rows scan_time;
	struct held_reader held;
	struct register_requester requester;
	struct latency_reader latency;
	struct event_reader events;
	struct wake_reader wakes;
	struct idle_keys idle_keys;
	struct share share;
	bool share_cleared;  /* leftovers of a killed tsnap were removed first */
	char left_out[1024]; /* probes that could not be attached, a line each */
};

/* Reads the host, takes features away, makes the plan. Attaches and loads nothing. 0 or -errno with
 * e.
 */
int kernel_plan(struct kernel *kernel, const struct kernel_options *options, struct error *e);
/* Plans, compiles, loads and attaches, or attaches to what is shared: from then on the map is
 * alive. 0, -EINTR, or -errno with e. */
int kernel_open(struct kernel *kernel, const struct kernel_options *options, struct error *e);
/* Opens a kernel without any program: the thread state array is in own memory, and the caller has
 * its records written (thread_table_init_own()). Takes no feature but those of this build. 0 or
 * -errno with e. */
int kernel_open_without(struct kernel *kernel, const struct kernel_options *options,
			bool (*lasts)(const struct thread_state *record), struct error *e);
/* Shares probes and maps, if options->share is set: from then on others can attach. The map must
 * know all threads. 0 or -errno with e. */
int kernel_publish(struct kernel *kernel, const struct kernel_options *options, struct error *e);
/* Finds the offsets only, for --write-offsets. */
int kernel_layout(struct kernel *kernel, const struct kernel_options *options, struct error *e);
void kernel_close(struct kernel *kernel); /* May be called after a failed open */

/* Reads the last look at each CPU; ticks has host.cpus_possible rows. Where looks are made on
 * demand, looks now at those CPUs whose wanted byte is set. Returns the number of rows (0 without a
 * way to look). */
int kernel_ticks_read(struct kernel *kernel, const unsigned char *wanted, struct cpu_tick *ticks);
/* Reads what these looks read in the memory of threads, one for each possible CPU. False: looks
 * read none. */
bool kernel_memory_read(struct kernel *kernel, struct memory_look *looks);
/* Has looks read the record that the pointer at this address leads to, while that thread is on a
 * CPU. A thread that does not exist any more is forgotten some time. */
void kernel_look_at(struct kernel *kernel, int64_t tid, uint64_t address);

/* Returns what the probes could not do since they were attached, as sums over all CPUs. */
struct probe_counters kernel_counters(struct kernel *kernel);

/* Reads the ns spent in tsnap's programs and the number of their runs, since they were loaded;
 * -ENODATA where the kernel does not count (sysctl kernel.bpf_stats_enabled, since 5.1). */
int kernel_bpf_cost(struct kernel *kernel, uint64_t *ns, uint64_t *runs);

#endif
