/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The live source's own state and parts; for src/live only.
 */
#ifndef TSNAP_LIVE_LIVE_STATE_H
#define TSNAP_LIVE_LIVE_STATE_H

#include "base/priority.h"
#include "live/context/live_context.h"
#include "live/scan/episodes.h"
#include "live/scan/live_dns.h"
#include "maps/kernel.h"
#include "parser/parser.h"
#include "live/sampler/sampler.h"
#include "live/threads/live_sample.h"
#include "live/threads/live_seed.h"
#include "live/scan/live_account.h"
#include "live/context/live_host.h"
#include "live/scan/live_processes.h"
#include "live/scan/live_self.h"
#include "live/stacks/live_stacks.h"
#include "live/threads/live_totals.h"
#include "base/cache.h"
#include "live/resolve/lookup.h"
#include "live/scan/live_held.h"
#include "live/chains/live_chains.h"
#include "unwind/runtime/runtime_locks.h"
#include "live_wakeups.h"
#include "proc/cgroup_events.h"
#include "sample/proc_values.h"
#include "sample/filter/filter.h"
#include "sample/source.h"

#define REGISTERS_MORE_NS (2 * NS_PER_MS)   /* time that registers are kept while a scan goes on */
#define HOUSEKEEPING_NS (1 * NS_PER_SECOND) /* zombies, patterns, caches */

/* Records that are awake, and walks over all of them: live_scan.c. */
struct live_walk {
	struct index awake;	 /* keys captured in this scan, or waiting for a record */
	struct index awake_next; /* keys that wait in the next scan, or were missed in this one */
	struct index keys_next;	 /* keys, also settled ones, that the next captures must have */
	struct index crowds;	 /* pid to threads that were captured (shares: in short waits) */
	uint32_t shares;	 /* struct source, for this scan */
	uint32_t scans;
	int64_t *arrived_ns;	  /* arrivals at the present scan time, see struct live_scan_time */
	struct index ambiguous;	  /* tid to switch sequence << 8 | state shown by /proc, plus one */
	bool walking;		  /* true while a walk passes records that were not captured */
	size_t threads, walked;	  /* threads in the last round of walks, in this one so far */
	unsigned int rounds;	  /* rounds that began when housekeeping was done */
	uint32_t gone_looks_left; /* looks for gone threads left in this scan */
	uint32_t gone_turns;	  /* rounds in which all threads are looked for */
	bool sweep;		  /* true: totals are swept at the end of this round */
	int64_t unfit_threads;	  /* threads without a record; negative: stale records */
	int64_t other_threads;	  /* threads of other pid namespaces, in the last round */
};

/* The batch of a scan that is gathered: live_batch.c. */
struct live_batch {
	struct sample samples[SCAN_BATCH];
	struct episode *kept[SCAN_BATCH];    /* episodes that keep the samples; or NULL */
	struct scan scan;		     /* scan with these samples */
	int err;			     /* error of the callback that took a batch */
	size_t refused_count;		     /* samples to be removed: their tid is ABSENT */
	struct proc_values_pool proc_values; /* memory for the samples' values of /proc */
	struct thread_state requested[REQUESTS_MAX]; /* records that lack their registers */
	uint32_t requested_sample[REQUESTS_MAX];     /* indexes of their samples */
	uint32_t requested_count;
};

/* Larger maps: live_grow.c. */
struct live_growth {
	struct probe_counters earlier; /* sums of the probes before each growth */
	bool ended;		       /* the maps can't be made larger */
};

/* Times, monotonic but for own_cpu_start_ns. */
struct live_times {
	int64_t previous_ns;	  /* the scan before this one */
	int64_t utc_ahead_us;	  /* UTC less the monotonic time at that scan; 0: none yet */
	int64_t slept_ns;	  /* time that the host had been suspended by then */
	int64_t housekept_ns;	  /* the last housekeeping */
	int64_t own_cpu_start_ns; /* CPU time that the start began with */
	int64_t own_start_ns;
};

struct live {
	struct source source;
	struct live_context context;
	struct live_times times;
	struct realtime realtime; /* priority of the thread that makes samples */
	struct live_processes processes;
	struct live_walk walk;
	struct episodes episodes;
	struct live_batch batch;
	struct live_stacks stacks;
	struct live_chains *chains; /* NULL until chains are wanted */
	struct live_wakeups wakeups;
	struct runtime_locks runtime_locks;
	struct live_host host;
	struct live_held held;
	bool own_begun; /* true: counted among the users of own probes */
	struct cgroup_events cgroup_events;
	struct dns_queries queries; /* of --trace dns */
	struct live_accounts accounts;
	struct live_growth growth;
	struct live_self self;
	struct text chosen, remarks; /* text for -v, and remarks for all users */
};

/* Bit in a key of live->walk.awake for a thread that has no record in the kernel's map yet; keys of
 * the map are 32 bits. */
#define SEED_KEY (1ull << 32)

static inline uint64_t awake_key(const struct thread_state *record, uint32_t key)
{
	return record->sched.tid ? key : SEED_KEY | record->identity.tid;
}

/* live_batch.c. add: makes a sample of the record, and first hands over what was gathered if the
 * batch is full (copy: where the record was captured, or NULL; shares: how many threads it stands
 * for). request: requests the registers that samples wait for, and completes these
 * samples. settle: does the same, and completes live->batch.scan. */
void live_batch_add(struct live *live, const struct thread_state *record,
		    const struct captured *copy, enum thread_state_kind state, uint32_t shares);
void live_batch_request(struct live *live);
void live_batch_settle(struct live *live);

/* live_scan.c: makes samples of what was captured, and reads the other records that this scan
 * needs; the last samples of it, or all, are left in live->batch.scan. 0, or -errno of the kernel.
 */
int live_scan_read(struct live *live);

/* live.c: makes the lookup that facts are looked up with. */
struct lookup *live_lookup_new(struct live *live);

#endif
