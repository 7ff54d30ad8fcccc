/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes samples of kernel records: what a thread did at the scan time, and its running totals then.
 * Pure.
 *
 * Each group of a record has one writer. The switch group is bracketed by two sequence words,
 * written in the opposite order to the reader's, so a copy with equal words is whole; any other is
 * read again.
 *
 * A scan takes time. record_state() uses the last switch in, switch out and wake-up to find out
 * what each thread did at the one scan time: when the scan was due, where switches since have kept
 * that (maps/scan_time_rows.h), else when tsnap began to copy. To begin, tsnap needs a CPU: the
 * thread that it displaced left at the very nanosecond at which tsnap's own record came in, and
 * counts as ON. So does a thread that went to sleep at that nanosecond, if it ran when tsnap's
 * timer expired: without kernel preemption tsnap waits for the end of a system call. The interrupt
 * of that timer also wakes threads of its CPU whose sleep was to end within their timer slack; they
 * count as asleep.
 *
 * A waker can come while a thread is on its way to sleep, and the kernel may skip a program, as it
 * does at the last switch on a CPU that goes offline. Such records show by their own times, by the
 * perf clock or by the CPU, and /proc decides, once for each switch
 * (live_scan.c). A dead thread's record is removed at its last switch; a zombie's when it was
 * waited for, or by a look once a second.
 */
#ifndef TSNAP_LIVE_THREADS_LIVE_SAMPLE_H
#define TSNAP_LIVE_THREADS_LIVE_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#include "kernel/record.h"
#include "sample/sample.h"

struct lookup_hint;
struct proc_syscall;

/* Scan time, and what the sampler knows about CPUs and itself at that time. */
struct live_scan_time {
	int64_t now_ns;		      /* monotonic */
	const struct cpu_tick *ticks; /* one per possible CPU */
	int tick_count;
	/* one per possible CPU: when the last of the known threads had come there, up to the scan
	 * time; 0: none; NULL: not looked at */
	const int64_t *arrived_ns;
	size_t arrived_count;
	const unsigned char *offline; /* one per possible CPU; NULL: all are online */
	uint32_t offline_count;
	bool of_proc;	       /* records are made from /proc: proc_records.h */
	bool registers_known;  /* the location of the saved registers was found */
	bool registers_marked; /* native calls leave a mark, for registers_decode() */
	int64_t own_wake_ns;   /* time when the timer woke the sampler; 0: it did not sleep */
	uint32_t own_cpu;      /* CPU that the sampler came on */
	int64_t own_in_ns;     /* time when the sampler came on own_cpu */
};

/* Totals of a thread since its record was made, with its present state up to now. */
struct live_totals {
	int64_t at_ns; /* scan time at which they were computed, monotonic */
	int64_t cpu_ns, runq_ns, disk_ns, sleep_ns;
	int64_t voluntary_count, involuntary_count;
	int64_t until_ns;    /* scan time that they reach to; 0: some time before it is in none */
	int64_t switched_ns; /* time of the last switch that they include */
};

/* Returns the enum thread_state_kind of task state bits, as struct thread_sched has them. */
enum thread_state_kind task_state_kind(uint32_t state);

/* Returns the enum thread_state_kind of a record. *ambiguous: a waker came while the thread was on
 * its way to sleep, so it may be runnable, or another thread has its CPU although no probe saw it
 * leave: /proc knows. */
enum thread_state_kind record_state(const struct thread_state *record,
				    const struct live_scan_time *scan_time, bool *ambiguous);

/* True if by the scan time another thread had come to the CPU that this one was on last: if the
 * record still has it there, its switch out was missed. */
bool record_followed(const struct thread_state *record, const struct live_scan_time *scan_time);
/* True if a look at the thread's CPU (struct cpu_tick) found another thread there after this one
 * had come. */
static inline bool record_replaced(const struct thread_state *record, uint64_t look_ns,
				   uint32_t look_tid)
{
	return look_ns >= record->sched.in_ns && look_tid != record->identity.tid;
}

/* The look at the thread's CPU since it came there, in scan_time->ticks; if it has left that, a
 * look since the scan time and before it left. NULL: there was none. */
const struct cpu_tick *record_tick(const struct thread_state *record,
				   const struct live_scan_time *scan_time);

bool record_is_kthread(const struct thread_state *record);

/* True if only a wake-up can change what the thread does: then it is enough to notice when it is
 * listed as woken. */
bool record_settled(const struct thread_state *record);

/* Returns when the thread began, as samples have it. */
int64_t record_start_ns(const struct thread_state *record);

/* Returns how long the thread had been in that state at the scan time. */
int64_t record_state_us(const struct thread_state *record, const struct live_scan_time *scan_time,
			enum thread_state_kind state);

/* Fills tid, pid, uid, start, comm, kthread, state, state_us, cpu, waker_tid; the rest becomes
 * absent. */
void record_sample(const struct thread_state *record, const struct live_scan_time *scan_time,
		   enum thread_state_kind state, struct sample *sample);

/* Fills syscall_nr and arg where the registers show them, and syscall_us where it is known; of
 * *hint, compat and no_call. */
void record_call(const struct thread_state *record, const struct live_scan_time *scan_time,
		 enum thread_state_kind state, struct sample *sample, struct lookup_hint *hint);

/* Puts a call that /proc shows, and whether a 32-bit program made it, into a record of a thread
 * that sleeps in it: record_call() finds it there, where scan_time->of_proc is set. */
void record_put_call(struct thread_state *record, const struct proc_syscall *call, bool compat);

/* Sets *compat as record_call() does, and nothing else. False: the registers show no call. */
bool record_call_compat(const struct thread_state *record, const struct live_scan_time *scan_time,
			enum thread_state_kind state, bool *compat);

/* Checks when the call of a thread on a CPU began. Its registers are read after the record, so what
 * the record says of the call's beginning holds only if a record read again, after them, still says
 * so. Otherwise it becomes absent. */
void record_call_check(struct thread_state *record, const struct thread_state *again);

void record_totals(const struct thread_state *record, const struct live_scan_time *scan_time,
		   enum thread_state_kind state, struct live_totals *totals);

#endif
