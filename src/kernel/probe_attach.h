/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Attaches the loaded programs, in the parent: closing the descriptors detaches, also when tsnap is
 * killed. */
#ifndef TSNAP_KERNEL_PROBE_ATTACH_H
#define TSNAP_KERNEL_PROBE_ATTACH_H

#include "base/error.h"
#include "kernel/probe_table.h"

struct probe_links {
	int *fds; /* malloced */
	size_t count;
	bool legacy_kprobes; /* some need bpf_detach_kprobe */
};

/* programs: a descriptor for each group of the plan. rate_hz: of the perf clock. A group that is
 * not required and can't be attached is left out, and left tells why (text of lines). */
int probe_attach(const struct probe_plan *plan, const int *programs, int64_t rate_hz,
		 struct probe_links *links, char *left, size_t left_size, struct error *e);
void probe_detach(struct probe_links *links);

/* Removes kprobe events that a killed tsnap left in tracefs (kernels without a kprobe event source,
 * before 4.17). */
void probe_clear_stale(void);

#endif
