/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Attaches the loaded programs, in the parent: closing the descriptors detaches, also when tsnap is
 * killed. */
#ifndef TSNAP_KERNEL_PROBE_ATTACH_H
#define TSNAP_KERNEL_PROBE_ATTACH_H

#include "base/error.h"
#include "kernel/feature_table.h"
#include "kernel/probe_table.h"

/* Place of a CPU's clock in probe_links.fds. */
struct probe_clock {
	int cpu;
	size_t link;
};

struct probe_links {
	int *fds; /* malloced */
	size_t count;
	bool legacy_kprobes; /* some need bpf_detach_kprobe */
	bool taken;	     /* not attached: a tracepoint is another program's (before 4.15) */
	/* perf clocks, if the plan has any */
	struct probe_clock *clocks; /* malloced */
	size_t clock_count;
	int clock_program;
	int64_t clock_rate_hz;
};

/* True if the kernel has what the row wants, and its event where that is a tracepoint: 4.2 and RHEL
 * 7 have no sched_waking, and libbcc refuses all of a text that names a tracepoint which is not
 * there. missing, unless NULL: a word for what is not there. */
bool probe_offered(struct features *features, const struct probe_row *row, const char **missing);

/* programs: a descriptor for each group of the plan. rate_hz: of scans; the perf clock looks more
 * often. A group that is not required and can't be attached is left out, and left tells why (text
 * of lines); but if a tracepoint is taken, nothing is attached. */
int probe_attach(const struct probe_plan *plan, const int *programs, int64_t rate_hz,
		 struct probe_links *links, char *left, size_t left_size, struct error *e);
void probe_detach(struct probe_links *links);
/* Starts a clock on the CPU, in the place of one that is there. The kernel ends those of a CPU that
 * goes off (perf_event_exit_cpu), without a word. 0 or -errno. */
int probe_clock_attach(struct probe_links *links, int cpu);

/* Removes kprobe events that a killed tsnap left in tracefs (kernels without a kprobe event source,
 * before 4.17). */
void probe_clear_stale(void);

#endif
