/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Attaches the loaded programs, in the parent: closing the descriptors detaches, also when tsnap is
 * killed. */
#ifndef TSNAP_KERNEL_PROBE_ATTACH_H
#define TSNAP_KERNEL_PROBE_ATTACH_H

#include <stdbool.h>

#include "base/error.h"
#include "kernel/feature_table.h"
#include "kernel/probe_table.h"

/* Index of a CPU's clock in probe_links.fds. */
struct probe_clock {
	int cpu;
	size_t link;
};

struct probe_links {
	int *fds; /* malloced */
	size_t count;
	struct own_links {
		size_t from, to;   /* indices in fds, to excluded */
	} own[2 * OWN_PROBES_MAX]; /* of each own probe's entry and return */
	bool legacy_kprobes;	   /* some probes need bpf_detach_kprobe */
	bool taken; /* a tracepoint is another program's (before 4.15): none attached */
	/* perf clocks, if the plan has any */
	struct probe_clock *clocks; /* malloced */
	size_t clock_count;
	int clock_program;
	int64_t clock_rate_hz;
};

/* True if the kernel has what the row wants, and its event where that is a tracepoint: 4.2 and RHEL
 * 7 have no sched_waking, and libbcc refuses all of a text that names a tracepoint which is not
 * there. missing, unless NULL: gets the name of what is not there. */
bool probe_offered(struct features *features, const struct probe_row *row, const char **missing);

/* Attaches the programs. programs: a descriptor for each group of the plan. rate_hz: rate of scans;
 * the perf clock looks more often. A group that is not required and can't be attached is left out,
 * and left says why (text of lines); but if a tracepoint is taken, nothing is attached. */
int probe_attach(const struct probe_plan *plan, const int *programs, int64_t rate_hz,
		 struct probe_links *links, char *left, size_t left_size, struct error *e);
void probe_detach(struct probe_links *links);
/* Starts a clock on the CPU, in place of one that is there. The kernel silently ends the clocks of
 * a CPU that goes offline (perf_event_exit_cpu). 0 or -errno. */
int probe_clock_attach(struct probe_links *links, int cpu);

/* Detaches a probe of the user's own, by its index. */
void probe_detach_own(struct probe_links *links, unsigned int index);
/* True if a uprobe at an instruction that begins so makes the program step over a copy of it. */
bool probe_is_stepped(const unsigned char instruction[2]);
/* Runs a function of this process often, with a uprobe or uretprobe on it, and returns what the
 * kernel takes for a call without any program, in ns; or -errno. */
int64_t probe_function_cost(bool returns, bool stepped);
/* The same for a function of the kernel: what a system call takes longer with a probe on it. */
int64_t probe_kernel_cost(bool returns);
/* True if this kernel's functions can be probed. */
bool probe_kernel_offered(void);

/* Removes kprobe events that a killed tsnap left in tracefs (kernels without a kprobe event source,
 * before 4.17). */
void probe_clear_stale(void);

#endif
