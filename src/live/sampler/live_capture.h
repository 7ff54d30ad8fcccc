/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The part of a scan that must be short: copies of the records of all threads that may have moved
 * since the last scan, looks at the CPUs where threads run, and registers. It looks nothing up
 * outside of the kernel's maps and writes nothing; live_scan.c makes samples of the copies later.
 *
 * It begins at real-time priority, so that the moment of a scan does not depend on when other
 * threads leave a CPU to tsnap; what takes longer than REALTIME_BUDGET_NS goes on at normal
 * priority.
 *
 * The moment lies anywhere in the first half of the period (10 ms at most) and always comes from
 * a sleep: at a fixed rate it would keep its distance to the kernel's own tick, at which threads
 * are switched.
 *
 * Copied are the records of whoever was woken or began, as the CPUs' rings list them once for
 * each number that samplers count up (maps/changed_list.h), and of whoever was not settled in
 * the last scan.
 */
#ifndef TSNAP_LIVE_SAMPLER_LIVE_CAPTURE_H
#define TSNAP_LIVE_SAMPLER_LIVE_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/record.h"

struct captured {
	struct thread_state record;
	bool switched; /* between the copy of the record and the look at the thread's CPU */
	bool asked;    /* for its registers; true also if the thread ran meanwhile, and has none */
};

/* Zeroed is empty. */
struct live_capture {
	struct captured *threads;
	size_t count, capacity;
	uint64_t passed; /* records, all looked at by a walk over the array */
	bool listed;	 /* else: the list of changes was not whole, all records were looked at */
};

struct live;

/* Fills live->capture and the scan's moment. tick_ns: when the scan was due. */
void live_capture(struct live *live, int64_t tick_ns);
void live_capture_done(struct live_capture *capture);

#endif
