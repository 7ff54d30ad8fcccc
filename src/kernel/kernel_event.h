/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events by their names: perf tracepoints, through tracefs (libbcc's call for them returns no
 * errno, and prints it), and functions of the kernel, as a kprobe wants them. */
#ifndef TSNAP_KERNEL_KERNEL_EVENT_H
#define TSNAP_KERNEL_KERNEL_EVENT_H

#include <stdbool.h>

/* Runs a BPF program of type TRACEPOINT at the event, "sched:sched_switch", until the descriptor
 * that is returned is closed. -errno: -ENOENT where tracefs does not show the event, -EEXIST where
 * another program is attached to it and the kernel takes only one (before 4.15). */
int tracepoint_attach(const char *event, int program);

/* True if tracefs shows the event. */
bool tracepoint_exists(const char *event);

/* Words for a failure: -EEXIST has its own, others have strerror(). */
const char *tracepoint_why(int result);

/* Looks for a function in /proc/kallsyms, which need not show addresses: name itself, or a variant
 * such as name.isra.0, but not name.cold. found gets the full name (size bytes). 0 or -ENOENT. */
int kernel_function_find(const char *name, char *found, unsigned int size);

#endif
