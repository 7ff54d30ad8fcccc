/* SPDX-License-Identifier: GPL-2.0-or-later */
/* State that every part of the live source may look at: options, what was opened at the start, and
 * the scan that is being worked on. Filled by src/live/live.c.
 */
#ifndef TSNAP_LIVE_CONTEXT_LIVE_CONTEXT_H
#define TSNAP_LIVE_CONTEXT_LIVE_CONTEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/index.h"
#include "live/context/live_config.h"
#include "live/resolve/lookup.h"
#include "live/sampler/sampler.h"
#include "live/threads/live_block.h"
#include "live/threads/live_sample.h"
#include "live/threads/live_seed.h"
#include "live/threads/live_totals.h"
#include "live/threads/proc_records.h"
#include "maps/kernel.h"
#include "parser/parser.h"
#include "sample/filter/filter.h"

#define PROC "/proc"

/* Threads that are wanted, and facts that their samples must have. */
struct live_wants {
	struct filter *filter;
	uint64_t needs;		 /* facts that any column or the filter wants, NEED_* */
	uint64_t filter_needs;	 /* the filter's part of needs */
	uint64_t probe_needs;	 /* the part of needs that probes must serve */
	uint64_t lacking_needs;	 /* what was taken out of needs, as this source can't serve it */
	uint64_t optional_needs; /* the part that other needs profit from and do without */
	bool idle;		 /* threads that are not active, too */
	bool work;		 /* sleepers that are part of a request, too */
};

/* Part of the host that /proc shows here. */
struct live_view {
	uint32_t own_pid;    /* tsnap's pid, as /proc shows it */
	uint32_t keeper_pid; /* pid of the process that waits for this one; 0: none */
	bool translated;     /* /proc is not the first pid namespace's */
	bool proc_whole;     /* /proc hides no process (hidepid): one that is not there is gone */
};

/* Threads that were on the CPUs, of the present scan: live_cpus.h. */
struct live_cpus {
	int64_t scan_time_ns;
	struct index threads; /* CPU to index in the scan's capture, plus one */
};

/* The scan that is being worked on. */
struct live_now {
	struct live_capture *capture; /* NULL: there is none */
	struct live_scan_time scan_time;
	struct live_block block;
	struct live_cpus cpus;
	uint64_t scan_count; /* scans before this one */
	bool housekeeping;   /* set once a second, for work that need not be done at every tick */
};

struct live_context {
	struct live_config config;
	struct live_wants wants;
	struct live_view view;
	struct kernel kernel;
	struct proc_records *proc; /* makes the records; NULL: programs write them */
	struct live_seed seed;	   /* threads that have slept since before the start */
	struct lookup *lookup;
	struct parsers *parsers;    /* NULL: nothing is parsed (live_parsers.h) */
	uint64_t later_lookups;	    /* lookups dropped: the thread had left the call
				       (live/scan/episodes.h) */
	struct totals_table totals; /* times of each thread that samples have reported */
	struct keyed work_sleeps;   /* struct work_sleep of live/scan/live_work.h */
	struct sampler *sampler;
	int64_t period_ns; /* period of scans */
	struct live_now now;
};

/* True if the process is tsnap itself. */
static inline bool live_is_own(const struct live_context *context, int64_t pid)
{
	const struct live_view *view = &context->view;

	return pid == view->own_pid || (pid == view->keeper_pid && pid) ||
	       parsers_have((uint32_t)pid);
}

/* True if the filter excludes the thread, by the ids in its record. */
static inline bool live_refuses(const struct live_context *context,
				const struct thread_state *record)
{
	const struct filter *filter = context->wants.filter;

	return filter_looks_at_ids(filter) && record->identity.known & IDENTITY_NAME &&
	       filter_excludes(filter, record->identity.tgid, record->identity.tid);
}

/* Returns the parser of that slot. NULL: there is none. */
static inline struct parser *live_parser(const struct live_context *context, enum parser_slot slot)
{
	return context->parsers ? &context->parsers->parser[slot] : NULL;
}

#endif
