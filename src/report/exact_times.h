/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Times that each thread was on a CPU, in a run queue, in D and asleep since an interval of a
 * report began: exact, from the columns cpu_us, runq_us, dwait_us and sleep_us of its samples and
 * of the account at the interval's end. Keys that only samples have (system call, file, stack)
 * share these times: group_split.h.
 *
 * A sample holds the times since the thread's previous sample. If that sample is before the
 * interval, as in a replay with --from, the times are taken to be spread evenly, and the interval
 * gets its part. Memory is bounded: the caller shares out early when it is full.
 */
#ifndef TSNAP_REPORT_EXACT_TIMES_H
#define TSNAP_REPORT_EXACT_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "sample/sample.h"

/* The kinds of time that the kernel's records count, in the order of SUM_CPU_US to SUM_SLEEP_US.
 * TIME_ASLEEP: in S, T, I and P. */
enum time_kind { TIME_ON, TIME_RQ, TIME_DISK, TIME_ASLEEP, TIME_KINDS };

#define EXACT_THREADS_MAX (1u << 18)
#define EXACT_PART_NONE UINT32_MAX
#define EXACT_TABLES_MAX 16

/* Time of one kind of a thread, and what its samples in such a state saw of it. */
struct exact_part {
	int64_t us;	    /* ABSENT: not known */
	int64_t sampled_us; /* weights of the samples */
	uint32_t episodes;  /* uninterrupted stretches in the state that samples saw; on a CPU:
			       samples */
};

struct exact_thread {
	int64_t tid, start_ns;
	int64_t last_us; /* elapsed time of the interval at its last sample */
	struct exact_part parts[TIME_KINDS];
	int32_t last_state;
	uint32_t group; /* group of any sample or account, plus one; set by group_split.c */
};

struct group_table;

struct exact_times {
	unsigned int shared;  /* kinds whose times are shared out, a bit each; of others samples are
				 counted */
	struct id_map by_tid; /* tid to index in threads, plus one */
	struct exact_thread *threads;
	size_t count, capacity;
	int64_t elapsed_us; /* time from the interval's begin to the present scan */
	int64_t weight_us;  /* weight of the last sample */
	/* Sums of this interval, made by group_table_split(): of all threads, and of those with a
	 * sample of the kind. */
	int64_t all_us[TIME_KINDS], covered_us[TIME_KINDS];
	struct group_table
		*tables[EXACT_TABLES_MAX]; /* those that the times are shared out among */
	size_t table_count;
};

/* Index of a sample's part in the exact times. */
struct exact_note {
	uint32_t part; /* index of the thread * TIME_KINDS + kind; or EXACT_PART_NONE */
	bool began;    /* the thread entered its state after its previous sample */
	bool again;    /* the sample was added before (struct scan, again) */
};

/* The note of a sample that has no part. */
#define EXACT_NOTE_NONE ((struct exact_note){.part = EXACT_PART_NONE, .began = true})

/* The kind of a state (enum thread_state_kind); -1: none, the time of a zombie is not counted. */
int time_kind_of(int64_t state);
/* The state for time that no sample saw. */
int64_t time_kind_state(int kind);

/* True if the sample holds times that are shared out. */
bool exact_times_has(const struct exact_times *times, const struct sample *sample);
/* Sets how long the interval has lasted at the scan of the samples added next: the sum of its
 * scans' weights, as clocks may step. */
void exact_times_at(struct exact_times *times, int64_t elapsed_us);
/* Adds the times of a sample. */
struct exact_note exact_times_add(struct exact_times *times, const struct sample *sample);
/* Adds the times of a sample whose thread's index is known. */
struct exact_note exact_times_add_at(struct exact_times *times, uint32_t slot,
				     const struct sample *sample);
/* Adds the weight of a sample that stands for more scans than it was added for: the thread's later
 * samples may have been added since. */
struct exact_note exact_times_add_again(struct exact_times *times, const struct sample *sample);
/* Finds the part of the times that the sample belongs to; false: there is none. */
bool exact_times_part(const struct exact_times *times, const struct sample *sample, uint32_t *part);
/* Adds the times of an account. Returns the index of its thread; EXACT_PART_NONE: the account is of
 * exited threads, which have none. */
uint32_t exact_times_add_account(struct exact_times *times, const struct sample *account);
/* True if threads must be cleared before more is added. */
bool exact_times_full(const struct exact_times *times);
/* Drops the threads after their times were shared out. */
void exact_times_clear(struct exact_times *times);
/* Ends the interval: clears its sums, too. */
void exact_times_end_interval(struct exact_times *times);
void exact_times_done(struct exact_times *times);

#endif
