/* SPDX-License-Identifier: GPL-2.0-or-later */
/* CPU time of the whole host, from the idle time in /proc/stat, which is exact if the kernel stops
 * the tick of idle CPUs; other columns are counted in ticks, those of interrupts unless the kernel
 * has CONFIG_IRQ_TIME_ACCOUNTING, and but for steal time, which the hypervisor tells.
 *
 * So busy time is elapsed time less idle time, not user and system time; it contains steal time, as
 * the sum it is compared with does (add_check() of render/render_report.c).
 */
#ifndef TSNAP_PROC_CPU_BUSY_H
#define TSNAP_PROC_CPU_BUSY_H

#include <stddef.h>
#include <stdint.h>

#include "sample/source.h"

/* Sums over all online CPUs. Times are since boot; only differences mean something. */
struct cpu_busy {
	int64_t at_ns; /* monotonic */
	int64_t cpus;  /* 0: not known */
	int64_t idle_us;
	int64_t interrupt_us; /* time in hardware and software interrupts, also of idle CPUs */
};

/* Fills all but at_ns. text: beginning of /proc/stat, to a line after those of CPUs. 0 or
 * -EINVAL. */
int cpu_busy_parse(const char *text, struct cpu_busy *busy);
/* Reads stat below the root of a proc tree. On failure cpus is 0. */
void cpu_busy_read(const char *root, struct cpu_busy *busy);

/* Reads what interrupts and the hypervisor took of each online CPU since boot; the softirqs of
 * ksoftirqd are among that, too (account_process_tick()). Returns the number of CPUs, at most
 * SOURCE_CPUS_MAX. 0: not known. text: as above. */
size_t cpu_taken_parse(const char *text, struct source_cpu taken[SOURCE_CPUS_MAX]);
size_t cpu_taken_read(const char *root, struct source_cpu taken[SOURCE_CPUS_MAX]);

/* Busy time of all CPUs between two reads, in us; ABSENT if a CPU came or went. */
int64_t cpu_busy_between(const struct cpu_busy *from, const struct cpu_busy *to);

#endif
