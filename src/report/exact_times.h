/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Times that each thread was on a CPU, in a run queue, in D and asleep since an interval of a
 * report began: exact, from the columns cpu_us, runq_us, dwait_us and sleep_us of its samples and
 * of the account at the interval's end. What samples alone tell (system call, file, stack) shares
 * these times out: group_split.h.
 *
 * A sample holds the times since the thread's previous sample. Where that one lies before the
 * interval, as in a replay with --from, the part of them that belongs to the interval is taken to
 * be as large as its part of the time. In bounded memory: the caller shares out early when it is
 * full.
 */
#ifndef TSNAP_REPORT_EXACT_TIMES_H
#define TSNAP_REPORT_EXACT_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/id_map.h"
#include "sample/sample.h"

/* The kinds of time that the kernel's records count, in the order of SUM_CPU_US to SUM_SLEEP_US.
 * TIME_ASLEEP: in S, T, I and P. */
enum time_kind { TIME_ON, TIME_RQ, TIME_DISK, TIME_ASLEEP, TIME_KINDS };

#define EXACT_THREADS_MAX (1u << 18)
#define EXACT_PART_NONE UINT32_MAX

/* A thread's time of one kind, and what its samples in such a state saw of it. */
struct exact_part {
	int64_t us;	    /* ABSENT: not known */
	int64_t sampled_us; /* weights of the samples */
	uint32_t episodes; /* times in the state without a break that samples saw; on a CPU: samples
			    */
};

struct exact_thread {
	int64_t tid, start_ns, last_us;
	struct exact_part parts[TIME_KINDS];
	int32_t last_state;
	uint32_t group; /* group of any sample or account, plus one; by group_split.c */
};

struct exact_times {
	unsigned int
		shared; /* kinds whose times are shared out, a bit each; others: samples count */
	struct id_map by_tid; /* place in threads plus one */
	struct exact_thread *threads;
	size_t count, capacity;
	int64_t from_us, until_us; /* UTC: the interval so far */
	int64_t weight_us;	   /* weight of the last sample */
	/* Sums of this interval, by group_table_split(): all threads, and those with a sample of
	 * the kind. */
	int64_t all_us[TIME_KINDS], covered_us[TIME_KINDS];
};

/* Place of a sample in the exact times. */
struct exact_note {
	uint32_t part; /* place of the thread * TIME_KINDS + kind; or EXACT_PART_NONE */
	bool began;    /* the thread came into its state since its sample before */
};

/* The kind of a state (enum thread_state_kind); -1: none, the time of a zombie is not counted. */
int time_kind_of(int64_t state);
/* The state of time that no sample saw. */
int64_t time_kind_state(int kind);

/* True if the sample holds times that are shared out. */
bool exact_times_has(const struct exact_times *times, const struct sample *sample);
/* Sets the interval of what is added next: it began at from_us, and was seen at until_us. */
void exact_times_at(struct exact_times *times, int64_t from_us, int64_t until_us);
/* Adds the times of a sample. */
struct exact_note exact_times_add(struct exact_times *times, const struct sample *sample);
/* Adds the times of a sample whose thread's place is known. */
struct exact_note exact_times_add_at(struct exact_times *times, uint32_t slot,
				     const struct sample *sample);
/* Finds the part of the times that the sample belongs to; false: there is none. */
bool exact_times_part(const struct exact_times *times, const struct sample *sample, uint32_t *part);
/* Adds the times of an account. Returns the place of its thread; EXACT_PART_NONE: it is of threads
 * that ended, which have none. */
uint32_t exact_times_add_account(struct exact_times *times, const struct sample *account);
/* True if threads must be cleared before more is added. */
bool exact_times_full(const struct exact_times *times);
/* Drops the threads, as what they had was shared out. */
void exact_times_clear(struct exact_times *times);
/* Ends the interval: clears its sums, too. */
void exact_times_end_interval(struct exact_times *times);
void exact_times_done(struct exact_times *times);

#endif
