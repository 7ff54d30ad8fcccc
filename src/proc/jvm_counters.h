/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a HotSpot JVM counts of its stops: the counters of jstat(1) and jcmd PerfCounter.print,
 * which the JVM keeps in a mapping of /tmp/hsperfdata_USER/PID (on by default; off with
 * -XX:-UsePerfData and -XX:+PerfDisableSharedMem). They are read from the process's memory, so that
 * its mount namespace does not matter, and no file system is asked.
 *
 * Format: perfMemory.hpp of OpenJDK, the same from JDK 6 to 25: a prologue, and entries with a name
 * and a value each. All of it may be a lie.
 */
#ifndef TSNAP_PROC_JVM_COUNTERS_H
#define TSNAP_PROC_JVM_COUNTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct jvm_counters {
	/* since the JVM began: time in which all Java threads were stopped (sun.rt.safepointTime),
	 * and time of pauses to collect garbage (sun.gc.collector.N.time), and their number */
	int64_t stopped_us, gc_us, collections;
	int64_t threads; /* Java threads that live */
};

/* Takes the counters from the mapping's bytes. False: some are missing, or it is none. Pure. */
bool jvm_counters_parse(const void *bytes, size_t length, struct jvm_counters *counters);

/* The address of the mapping in that process; 0: it has none. Reads /proc/PID/maps. */
uint64_t jvm_counters_find(const char *root, int64_t pid);
/* Reads the counters from the mapping at that address. */
bool jvm_counters_read(const char *root, int64_t pid, uint64_t address,
		       struct jvm_counters *counters);

#endif
