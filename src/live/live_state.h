/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The live source's own state and parts; for src/live/live*.c only.
 */
#ifndef TSNAP_LIVE_LIVE_STATE_H
#define TSNAP_LIVE_LIVE_STATE_H

#include "base/realtime.h"
#include "live/context/live_context.h"
#include "maps/kernel.h"
#include "parser/parser.h"
#include "live/sampler/sampler.h"
#include "live/stacks/live_cpu_stacks.h"
#include "live/threads/live_sample.h"
#include "live/threads/live_seed.h"
#include "live/live_processes.h"
#include "live/live_self.h"
#include "live/stacks/live_copies.h"
#include "live/stacks/live_kept.h"
#include "live/stacks/live_stacks.h"
#include "live/threads/live_sleepers.h"
#include "live/threads/live_totals.h"
#include "live/threads/live_dead.h"
#include "base/cache.h"
#include "proc/cpu_busy.h"
#include "proc/cpu_quota.h"
#include "proc/io_limits.h"
#include "live/resolve/lookup.h"
#include "live_chains.h"
#include "live_gil.h"
#include "sample/proc_values.h"
#include "sample/filter/filter.h"
#include "sample/source.h"

#define REGISTERS_MORE_NS (2 * NS_PER_MS)   /* that switches keep registers while a scan goes on */
#define HOUSEKEEPING_NS (1 * NS_PER_SECOND) /* zombies, patterns, caches */

/* Of the whole host; see live_host.h. */
struct live_host {
	struct cpu_quotas quotas;
	struct io_limits io_limits;
	struct cgroup_mount groups; /* cgroup v2: its files of pressure */
	struct cache paths;	    /* of threads in RQ: live_runq.c */
};

struct live {
	struct source source;
	struct live_context context;
	struct live_stacks stacks;
	struct cpu_busy busy_first, busy; /* as of the first totals, and of the last account */
	int64_t busy_error_us; /* of one CPU, all accounts: between what that and totals tell of */
	int64_t busy_late_us; /* the part of it at the last one, where the next one's time begins */
	int64_t attached_ns;  /* when totals began to count */
	struct dead_table dead;
	struct live_host host;
	struct live_chains *chains; /* NULL: nobody has asked for any */
	struct python_gils gils;    /* live_gil.c */
	/* tid to switch sequence << 8 | what /proc said of it, plus one */
	struct index doubts;
	struct realtime realtime;	    /* of the thread that makes samples */
	struct thread_state asked[ASK_MAX]; /* records of this scan that lack their registers, */
	uint32_t asked_sample[ASK_MAX];	    /* and their samples */
	uint32_t asked_count;
	struct index awake;	 /* keys of who was captured in this scan, or waits for a record, */
	struct index awake_next; /* of who waits in the next one, and of who was missed in this */
	struct index crowds;	 /* processes to how many of their threads were captured */
	struct index keys_next;	 /* of settled ones, too, that the next captures must have */
	struct live_sleepers sleepers;
	bool walking; /* past records that nobody has asked for */
	struct sample samples[SCAN_PART];
	struct scan part;		     /* what is gathered now */
	int part_err;			     /* of who took one */
	size_t refused_count;		     /* samples of it that are to go: their tid is ABSENT */
	struct proc_values_room proc_values; /* of its samples */
	size_t threads, walked;		     /* in the last round of walks, in this one so far */
	int64_t previous_ns, housekept_ns;
	int64_t own_cpu_start_ns;
	struct live_self self;
	unsigned int rounds;	       /* that began when house was kept */
	uint32_t gone_looks_left;      /* in this scan */
	uint32_t gone_turns;	       /* rounds in which all are looked for */
	bool sweep;		       /* in this round */
	uint64_t later_stays;	       /* samples whose lookups came too late (live_stay.c) */
	struct probe_counters earlier; /* of the probes before each growth */
	bool grown_up;		       /* the array can't be made larger */
	int64_t unfit_threads;	     /* in the last round; below 0: so many records are nobody's */
	int64_t other_threads;	     /* of other pid namespaces, then */
	struct text chosen, remarks; /* for -v, for everybody */
	struct live_processes processes;
};

/* A key of live->awake of a thread that has no record in the kernel's map yet; keys there are 32
 * bits. */
#define SEED_KEY (1ull << 32)

static inline uint64_t awake_key(const struct thread_state *record, uint32_t key)
{
	return record->sched.tid ? key : SEED_KEY | record->identity.tid;
}

/* live_part.c: makes a sample of the record, and hands over what was gathered where there is no
 * room (asked: its registers are not to be asked for again); asks for the registers that samples
 * wait for; the same, and completes live->part. */
void live_part_add(struct live *live, const struct thread_state *record, enum thread_doing doing,
		   bool asked);
void live_part_ask(struct live *live);
void live_part_settle(struct live *live);

/* live_scan.c: makes samples of what was captured, and reads the other
 * records that this scan needs; the last samples of it, or all, are left in live->part. 0, or
 * -errno of the kernel. */
int live_scan_read(struct live *live);

/* live.c: what to look up with. */
struct lookup *live_lookup_new(struct live *live);

/* live_share.c: --share and --attach. After kernel_open(): makes good what an attached sampler has
 * not seen, or lets others attach. */
int live_share_begin(struct live *live, const struct kernel_options *options, struct error *e);

#endif
