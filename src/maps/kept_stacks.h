/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The sampler's side of KEEP_STACKS in bpf_text/sched_switch.bpf.c: in the capture window, the time
 * right before a scan, a switch out has the kernel write a perf sample into its CPU's ring, with
 * both stacks of the leaving thread: the call chain of the kernel stack, and registers and a copy
 * of the top of the user stack. Outside of the window the rings rest.
 *
 * A ring keeps the newest samples and forgets the oldest (write_backward, 4.7). For each thread a
 * scan needs the stacks of its last switch out before the scan time, and of its first one after
 * that. kept_stacks_seek() finds which of them are there, which takes few us, and
 * kept_stacks_copy() copies them, which takes ten times as long and can wait; threads whose stacks
 * were not kept can't wait. A caller must know the sequence number of the switch out, which is
 * compared. The copies belong to the scan: new samples may come meanwhile.
 */
#ifndef TSNAP_MAPS_KEPT_STACKS_H
#define TSNAP_MAPS_KEPT_STACKS_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/index.h"
#include "maps/cpu_sample.h"

struct kept_stacks_options {
	int events_map, window_map; /* ts_kept and ts_window, not owned; -1: not there */
	int cpus_possible;
	bool user, kernel;  /* stacks that are kept */
	int64_t user_bytes; /* bytes to copy of the user stack's top, a multiple of 8 */
};

struct kept_stacks {
	struct kept_stacks_options options;
	struct perf_event_attr attr;
	struct cpu_ring *rings;	     /* a ring for each possible CPU; NULL: closed */
	bool *online;		     /* CPUs online when kept_stacks_renew() last looked */
	int64_t lead_ns;	     /* time from the begin of a capture window to its scan */
	int64_t window_ns, until_ns; /* begin and end of the last window */
	_Atomic int64_t open_ns;     /* time that windows were open, of all so far */
	_Atomic uint64_t kept_count; /* switches that kept stacks in windows */
	int64_t renewed_ns;
	uint32_t seen_count; /* samples of the last window */
	bool cut_short;	     /* a ring did not reach back to the begin of that window */
};

/* A sample that a scan has or is to have. */
struct kept_found {
	uint64_t sequence;
	int64_t time_ns;
	int cpu; /* CPU whose ring has the sample */
	uint64_t at;
	size_t bytes;
	size_t slot; /* offset of its copy in kept_taken.bytes; SIZE_MAX: there is none */
};

/* Kept stacks that one scan has; zeroed is none. */
struct kept_taken {
	struct index samples;	  /* thread and side, to an index in found */
	struct kept_found *found; /* samples that the scan needs */
	size_t found_count, found_capacity;
	size_t found_bytes; /* bytes of all samples in found */
	char *bytes;	    /* copies of the samples */
	size_t used, capacity;
};

/* Opens zeroed stacks. 0, or -errno: they are closed; -ENOTSUP: the probes keep none. */
int kept_stacks_open(struct kept_stacks *stacks, const struct kept_stacks_options *options);
void kept_stacks_close(struct kept_stacks *stacks); /* May be called for zeroed stacks */

/* Has the probes of other maps write to the rings from now on. */
void kept_stacks_move(struct kept_stacks *stacks, int events_map, int window_map);
/* Opens rings of CPUs that came online, once a second. It reads a file: not to be called during a
 * scan. */
void kept_stacks_renew(struct kept_stacks *stacks);
/* Returns how long before a scan its capture window is to begin. It grows as long as there are few
 * switches in a window, which bounds the cost. 0: closed. */
int64_t kept_stacks_lead_ns(const struct kept_stacks *stacks);
/* Sets the next window, which ends at until_ns (monotonic) at the latest. */
void kept_stacks_begin(struct kept_stacks *stacks, int64_t from_ns, int64_t until_ns);

/* Choice of the kept stacks that a scan takes. */
struct kept_scan_time {
	int64_t now_ns;
	bool short_of_memory; /* takes only stacks of threads that ran, or that tsnap itself
				 displaced: those that left their CPUs in the millisecond before the
				 scan time, or later */
	bool lost_lately;     /* threads that had left their CPUs before the window ran before their
				 stacks were copied: the window may be longer */
	int cpus;	      /* online */
	int64_t period_ns;    /* time from scan to scan */
};

/* Ends the window, and finds those of its samples that a scan at that scan time needs. */
void kept_stacks_seek(struct kept_stacks *stacks, const struct kept_scan_time *scan_time,
		      struct kept_taken *taken);
/* Copies the samples that were found; to be called before the next window begins. */
void kept_stacks_copy(const struct kept_stacks *stacks, struct kept_taken *taken);
size_t kept_taken_bytes(const struct kept_taken *taken);
void kept_taken_done(struct kept_taken *taken);

/* True if stacks of the thread's switch out with that number were found (tid: as the kernel numbers
 * it). */
bool kept_stacks_known(const struct kept_taken *taken, uint32_t tid, uint64_t sequence);

/* Finds the stacks of a switch out, once they are copied; *sample points into taken. May be called
 * by any thread. False: there are none. */
bool kept_stacks_find(const struct kept_stacks *stacks, const struct kept_taken *taken,
		      uint32_t tid, uint64_t sequence, struct cpu_sample *sample);

/* Returns the kernel memory that the rings take now; 0: closed. */
size_t kept_stacks_ring_bytes(const struct kept_stacks *stacks);

#endif
