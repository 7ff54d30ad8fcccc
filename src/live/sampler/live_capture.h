/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Capture, the part of a scan that must be short: records of all threads that may have moved since
 * the last scan, looks at the CPUs where threads run, and registers. It looks nothing up outside of
 * the kernel's maps and writes nothing; live_scan.c makes samples of the copies later.
 *
 * The moment is when a scan was due, while tsnap needs a CPU first: whoever is switched in between
 * has kept what it did then (maps/scan_time_rows.h). Where nobody keeps that, the scan time is when
 * tsnap began, which leans to what threads do when others are on their CPU, too.
 *
 * It begins at real-time priority, so that this is soon; what takes longer than REALTIME_BUDGET_NS
 * goes on at normal priority, and so does the copy of those that have slept all the time, where all
 * are wanted: they stand still. That copy is made once, and again when something may be missing
 * (capture.whole); who has it keeps it up (live/live_asleep.h).
 *
 * Copied first are the records of whoever was woken or began, as the CPUs' rings list them once
 * for each number that samplers count up (maps/changed_list.h), of whoever was not settled in the
 * last scan, and of those that were asked for (sampler_return()).
 */
#ifndef TSNAP_LIVE_SAMPLER_LIVE_CAPTURE_H
#define TSNAP_LIVE_SAMPLER_LIVE_CAPTURE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "base/realtime.h"
#include "kernel/record.h"
#include "live/sampler/stack_copies.h"
#include "live/threads/live_sample.h"
#include "maps/block_reader.h"
#include "maps/cpu_sampler.h"
#include "maps/kept_stacks.h"
#include "maps/kernel.h"
#include "sample/filter/filter.h"

struct captured {
	struct thread_state record;
	bool switched;	/* since the copy of the record, until CPUs had been looked at, too */
	bool moved;	/* after the scan time: more than a wake-up tells what it does next */
	bool requested; /* for its registers; true also if the thread ran meanwhile, and has none */
	uint32_t round; /* live/live_asleep.h */
};

/* record_state() of the copy's record; of any other one where copy is NULL. A thread that was on a
 * CPU when it was copied, and off it when that was looked at, is not ambiguous because another one
 * was seen there. */
static inline enum thread_state_kind captured_state(const struct captured *copy,
						    const struct thread_state *record,
						    const struct live_scan_time *scan_time,
						    bool *ambiguous)
{
	enum thread_state_kind state = record_state(record, scan_time, ambiguous);

	if (*ambiguous && state == STATE_ON && copy && copy->switched)
		*ambiguous = record_followed(record, scan_time);
	return state;
}

/* Zeroed is empty. */
struct live_capture {
	struct captured *threads;
	size_t count, capacity;
	uint64_t passed; /* records, all looked at by a walk over the array */
	bool whole;	 /* all that sleep were copied, too, not only who was woken since */
	uint32_t *gone;	 /* keys that were to be copied, and of which there is nothing */
	size_t gone_count, gone_capacity;
	bool listed; /* else: the list of changes was not whole, all records were looked at */
	struct live_scan_time scan_time;
	struct cpu_tick *ticks;	    /* the scan time's: room for each possible CPU */
	int64_t time_us;	    /* time of the scan time, UTC */
	struct block_flights block; /* requests in flight, where they are wanted */
	/* stacks of who ran, where stacks are wanted */
	struct cpu_samples looked;
	struct kept_taken kept;	    /* stacks of who left right before the scan time or after it */
	struct stack_copies copies; /* stacks of who had left before that */
};

/* Options of a scan's copies: threads and what is copied of them. */
struct capture_wants {
	struct kernel *kernel;
	struct cpu_sampler *cpu_stacks; /* looks at the same CPUs at the same time */
	struct kept_stacks *kept;	/* may be closed */
	/* Copies stacks that may change at any time, for a capture that has all the rest. Returns
	 * how many threads had run before it came to them. NULL: nobody wants any. */
	size_t (*stacks_copy)(void *copier, struct thread_table *table, const struct filter *filter,
			      struct live_capture *capture);
	void *stacks_copier;
	const struct filter *filter; /* ids may change while no scan is copied */
	bool all;		     /* threads that have slept all the time, too */
	bool refused;		     /* threads whose ids the filter refuses, too */
	bool blockers;	   /* refused ones that may keep others waiting, too: such as are awake */
	bool registers;	   /* registers, which tell system calls */
	bool block;	   /* requests in flight */
	bool block_batch;  /* requests are read by one call */
	int64_t period_ns; /* from scan to scan */
	uint32_t own_pid, keeper_pid; /* tsnap's, which is left out */
};

struct cpu_seen {
	uint64_t seen_ns; /* 0: never */
	uint32_t tid;	  /* as in struct cpu_tick */
};

/* The way of it; one thread's. */
struct capturer {
	struct capture_wants wants;
	struct thread_table table; /* a view of the kernel's, */
	struct index awake;	   /* keys that the next scan must copy */
	struct index moved;	   /* rows of the scan time, struct scan_time_row * by key */
	struct index copied;	   /* keys that the last scan copied, but for who has slept */
	unsigned char *wanted_cpus;
	struct cpu_seen *seen; /* by CPU: the last look at it */
	struct block_reader block;
	struct realtime *realtime;
	pthread_mutex_t *requesting;  /* held by who asks for registers */
	struct live_capture *capture; /* the scan that is filled now */
	uint32_t own_tid, own_key;    /* ids of the thread that copies */
	bool own_key_known;	      /* own_key is set: it has a record */
	uint64_t moved_count;	      /* scans whose moment could not be kept */
	int64_t stacks_lost_ns;	      /* when stacks were last copied too late */
	bool looked;		      /* CPUs were, for this scan */
	bool whole;		      /* the next scan copies all that sleep */
};

/* By the thread that will copy. Both are the caller's to free with capturer_done(), which the same
 * or another thread calls. */
void capturer_init(struct capturer *capturer, const struct capture_wants *wants,
		   struct realtime *realtime, pthread_mutex_t *requesting);
void capturer_done(struct capturer *capturer);

/* Fills the capture. tick_ns: when the scan was due; stacks: there is room for those of who is off
 * its CPU. Afterwards capturer->awake has those of which more than a wake-up may change what they
 * do. */
void capture_take(struct capturer *capturer, struct live_capture *capture, int64_t tick_ns,
		  bool stacks);
void live_capture_done(struct live_capture *capture);
/* Memory that it takes. */
size_t live_capture_bytes(const struct live_capture *capture);

#endif
