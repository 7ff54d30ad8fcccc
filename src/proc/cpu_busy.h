/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CPU time of the whole host, by the idle time of /proc/stat: that is exact where the kernel stops
 * idle CPUs' ticks, other columns are ticks.
 *
 * Idle time is compared, not the ticks of user and system time; steal is in both (add_check() of
 * render/render_report.c).
 */
#ifndef TSNAP_PROC_CPU_BUSY_H
#define TSNAP_PROC_CPU_BUSY_H

#include <stdint.h>

/* Sums over all online CPUs. Times since boot; only differences mean something. */
struct cpu_busy {
	int64_t at_ns; /* monotonic */
	int64_t cpus;  /* 0: not known */
	int64_t idle_us;
	int64_t interrupt_us; /* in hardware and software interrupts, also of idle CPUs */
};

/* text: the file's beginning, to behind its lines of CPUs. Fills all but at_ns. 0 or -EINVAL. */
int cpu_busy_parse(const char *text, struct cpu_busy *busy);
/* Reads it below the root of a proc tree. Where that fails cpus is 0. */
void cpu_busy_read(const char *root, struct cpu_busy *busy);

/* Time of CPUs that were not idle from one to the other; ABSENT where a CPU came or went. */
int64_t cpu_busy_between(const struct cpu_busy *from, const struct cpu_busy *to);

#endif
