/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Capture: the part of a scan that must be short. It copies the records of all threads that may
 * have moved since the last scan, looks at the CPUs where threads run, and reads registers. It
 * looks up nothing outside of the kernel's maps and writes nothing; live_scan.c makes samples of
 * the copies later.
 *
 * The scan time is when a scan was due. tsnap gets a CPU only after that, so a thread that is
 * switched in between has kept what it did at the scan time (maps/scan_time_rows.h). Where switches
 * do not keep that, the scan time is when tsnap began, which is biased towards what threads do
 * while others are on their CPU.
 *
 * A capture begins at real-time priority, so that it begins soon. What takes longer than
 * REALTIME_BUDGET_NS goes on at normal priority. So does the copy of threads that have slept all
 * the time, where all threads are wanted: their records stand still. That copy is made once, and
 * again when something may be missing (capture.whole); its user keeps it up to date
 * (live/scan/episodes.h).
 *
 * The first records to be copied are those of threads that were woken or began, as the CPUs' rings
 * list them once for each number that samplers count up (maps/changed_list.h), of threads that were
 * not settled in the last scan, and of those that were requested (sampler_return()).
 */
#ifndef TSNAP_LIVE_SAMPLER_LIVE_CAPTURE_H
#define TSNAP_LIVE_SAMPLER_LIVE_CAPTURE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "base/priority.h"
#include "kernel/record.h"
#include "live/sampler/stack_copies.h"
#include "live/threads/live_sample.h"
#include "live/threads/proc_records.h"
#include "maps/block_reader.h"
#include "maps/cpu_sampler.h"
#include "maps/held_reader.h"
#include "maps/irq_reader.h"
#include "maps/kept_stacks.h"
#include "maps/kernel.h"
#include "sample/filter/filter.h"

struct captured {
	struct thread_state record;
	struct held_values held; /* at the scan time */
	bool switched;	/* record had another switch when read again, after looks at CPUs */
	bool moved;	/* switched after the scan time: may change without a wake-up */
	bool requested; /* registers were; true also if it ran meanwhile, and has none */
	uint32_t round; /* round of walks: live/scan/episodes.h */
};

/* Returns record_state() of a record: the copy's, or any other one where copy is NULL. A thread
 * that was on a CPU when it was copied, and off it when that CPU was looked at, is not ambiguous
 * because another thread was seen there. */
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

/* A zeroed struct is empty. */
struct live_capture {
	struct captured *threads;
	size_t count, capacity;
	uint64_t passed; /* records that walks over the array looked at */
	bool whole;	 /* all sleepers were copied, too, not only threads that were woken since */
	uint32_t *gone;	 /* keys that were to be copied, and of which there is no copy */
	size_t gone_count, gone_capacity;
	bool listed; /* the changed list was whole; false: all records were looked at */
	struct live_scan_time scan_time;
	struct cpu_tick *ticks;	    /* memory of scan_time.ticks: one per possible CPU */
	unsigned char *offline;	    /* memory of scan_time.offline */
	int64_t time_us;	    /* scan time in UTC */
	struct irq_seen *irqs;	    /* one per possible CPU; NULL: not wanted */
	struct memory_look *memory; /* likewise, of the same looks as ticks */
	struct block_flights block; /* requests in flight, where they are wanted */
	/* stacks of threads that ran, where stacks are wanted */
	struct cpu_samples looked;
	struct kept_taken kept;	    /* stacks of switches out right before the scan time or later */
	struct stack_copies copies; /* stacks of threads that had left before that */
};

/* Options of a scan's copies: threads and what is copied of them. */
struct capture_wants {
	struct kernel *kernel;
	struct proc_records *proc; /* makes the records before they are copied; NULL: programs do */
	struct cpu_sampler *cpu_stacks; /* looks at the same CPUs at the same time */
	struct kept_stacks *kept;	/* may be closed */
	/* Copies stacks that may change at any time, for a capture that has all the rest. Returns
	 * how many threads had run before it came to them. NULL: none are wanted. */
	size_t (*stacks_copy)(void *copier, struct thread_table *table, const struct filter *filter,
			      struct live_capture *capture);
	void *stacks_copier;
	const struct filter *filter; /* ids may change while no scan is copied */
	bool all;		     /* threads that have slept all the time, too */
	bool refused;		     /* threads whose ids the filter refuses, too */
	bool blockers; /* refused threads that may keep others waiting, too: those that are awake */
	bool registers;		      /* registers, which show system calls */
	bool block;		      /* requests in flight */
	bool irqs;		      /* interrupts that CPUs handle */
	bool memory;		      /* what looks read in the memory of threads */
	bool block_batch;	      /* requests are read by one call */
	int64_t period_ns;	      /* period of scans */
	uint32_t own_pid, keeper_pid; /* tsnap's own processes, which are left out */
};

struct cpu_seen {
	uint64_t seen_ns; /* 0: never */
	uint32_t tid;	  /* tid as in struct cpu_tick */
};

/* State of the thread that captures; no other one uses it. */
struct capturer {
	struct capture_wants wants;
	struct thread_table table; /* view of wants.kernel's table */
	struct index awake;	   /* keys that the next scan must copy */
	struct index moved;	   /* rows of the scan time, struct scan_time_row * by key */
	struct index copied;	   /* keys that the last scan copied, without long sleepers' */
	unsigned char *wanted_cpus;
	struct cpu_seen *seen; /* last look at each CPU */
	int online;	       /* descriptor of host_online_open(), or -errno */
	struct block_reader block;
	struct realtime *realtime;
	pthread_mutex_t *requesting;  /* held while registers are requested */
	struct live_capture *capture; /* the scan that is filled now */
	int64_t tick_ns;	      /* its scan time */
	uint32_t own_tid, own_key;    /* ids of the thread that copies */
	bool own_key_known;	      /* own_key is set: the thread has a record */
	uint64_t moved_count;	      /* scans that could not keep their scan time */
	int64_t stacks_lost_ns;	      /* time when stacks were last copied too late */
	bool looked;		      /* CPUs were looked at for this scan */
	bool whole;		      /* the next scan copies all that sleep */
};

/* Must be called by the thread that will copy. The capturer is the caller's to free with
 * capturer_done(), which the same or another thread calls. */
void capturer_init(struct capturer *capturer, const struct capture_wants *wants,
		   struct realtime *realtime, pthread_mutex_t *requesting);
void capturer_done(struct capturer *capturer);

/* Fills the capture. tick_ns: when the scan was due; stacks: there is memory for the stacks of
 * threads that are off their CPU. Afterwards capturer->awake has the keys of threads that may
 * change without a wake-up. */
void capture_take(struct capturer *capturer, struct live_capture *capture, int64_t tick_ns,
		  bool stacks);
void live_capture_done(struct live_capture *capture);
/* Returns the bytes of memory that a capture takes. */
size_t live_capture_bytes(const struct live_capture *capture);

#endif
