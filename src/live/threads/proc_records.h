/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Records of threads made from /proc, where no BPF program writes them: a walk over /proc writes
 * each thread's record in the thread state array as the programs would have left it, so that
 * captures, episodes and lookups go on as ever. Two files are read of each thread: stat, and
 * schedstat (CONFIG_SCHED_INFO, which nearly every kernel has).
 *
 * A record gets a new number (sequence_done) if its thread has come on a CPU since the walk before,
 * or is in another state. kernel_voluntary is the number of its arrivals on a CPU.
 *
 * /proc calls a runnable thread R, whether it is on a CPU or waits for one. schedstat tells these
 * apart (is_on() has the rules): exactly if the thread has come on no CPU since the walk before, or
 * on one that it has not left. Of another one the two sums are known that it has had in between,
 * and its samples are shared out by them: ON and RQ are right in sum, and may be interchanged in a
 * single scan.
 *
 * Times in a state begin with the walk that found it: they are least times. Totals are whole
 * (cpu_ns to a clock tick) but for disk_ns and sleep_ns, which /proc does not have.
 *
 * One thread walks. Any thread may read the records.
 */
#ifndef TSNAP_LIVE_THREADS_PROC_RECORDS_H
#define TSNAP_LIVE_THREADS_PROC_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "maps/thread_table.h"

/* A walk takes at most this part of the time, on average: one in WALK_REST. */
#define WALK_REST 10

struct proc_record;

struct proc_records {
	struct thread_table *table; /* in own memory; this thread's view of it */
	bool counts_switches;	    /* switches are wanted, too, of which status has the count */
	bool reads_calls;	    /* system calls of threads that have just fallen asleep, too */
	struct proc_record *rows;   /* by slot of the array */
	size_t capacity;
	double *ahead; /* by CPU, see proc_gained_is_on() */
	size_t ahead_capacity;
	uint32_t walk;	       /* number of this walk; 0: none yet */
	int64_t now_ns;	       /* its scan time, monotonic */
	int64_t since_boot_ns; /* boot time when the walk before began */
	int64_t cost_ns;       /* CPU time of the last walk */
	int64_t ticks_ns;      /* see struct proc_gained */
};

/* Why these records can't be made on this host; NULL: they can. */
const char *proc_records_lack(void);

/* Callbacks of a walk. */
struct proc_visitor {
	/* True if the thread is to have no record: tsnap's own, and those that nobody wants. */
	bool (*passes)(void *to, int64_t pid, int64_t tid);
	/* Takes the key of each record that is new, or has a new number, or is gone. */
	void (*changed)(void *to, uint32_t key);
	void (*step)(void *to); /* is called now and then */
	void *to;
};

/* Walks over all threads. now_ns: the scan time. 0 or -errno. */
int proc_records_walk(struct proc_records *records, int64_t now_ns,
		      const struct proc_visitor *visitor);
void proc_records_done(struct proc_records *records);

/* True if the thread has not come on a CPU since the walk that wrote the record. */
bool proc_record_lasts(const struct thread_state *record);

/* What a thread has had between two walks. */
struct proc_gained {
	int64_t elapsed_ns;	 /* time between the readings */
	int64_t cpu_ns, runq_ns; /* as of struct proc_schedstat */
	uint64_t arrivals;	 /* on a CPU */
	bool was_on;		 /* it was on a CPU at the walk before */
	int64_t ticks_ns; /* time for which a thread may be on a CPU and nothing be added up */
};

/* Tells whether a thread in R was on a CPU. *carry: how many more of its samples ought to have been
 * RQ than were, which the next ones make up for; *ahead: how many more threads of its CPU are ON in
 * this walk than ought to be. Pure. */
bool proc_gained_is_on(const struct proc_gained *gained, double *carry, double *ahead);

#endif
