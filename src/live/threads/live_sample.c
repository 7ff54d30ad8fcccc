/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/threads/live_sample.h"
#include "base/clock.h"
#include "base/names.h"
#include "kernel/host.h"
#include "kernel/registers.h"
#include "proc/lookup_hint.h"
#include "proc/proc.h"
#include "maps/register_requester.h"

#include <string.h>
#include <unistd.h>

/* Task state bits, include/linux/sched.h of 4.14 and later. Before 4.14 the bits from 0x40 on were
 * others: task_state() in bpf_text/kernel_fields.h maps the one that matters here. */
#define TASK_INTERRUPTIBLE_BIT 0x1u
#define TASK_UNINTERRUPTIBLE_BIT 0x2u
#define TASK_STOPPED_TRACED_BITS 0xcu
#define TASK_PARKED_BIT 0x40u
#define TASK_NOLOAD_BIT 0x400u
#define TASK_DISK_LIKE_BITS 0x9000u /* RTLOCK_WAIT (5.15), FROZEN (6.1): D in /proc, too */
#define EXIT_ZOMBIE_BIT 0x20u

#define INTERRUPT_NS (50 * NS_PER_US)	    /* a timer interrupt may take so long */
#define TICK_USUAL_NS (NS_PER_SECOND / 100) /* clock tick of /proc's times */

bool record_is_kthread(const struct thread_state *record)
{
	return record->identity.task_flags & kernel_thread_flags();
}

const struct cpu_tick *record_tick(const struct thread_state *record,
				   const struct live_scan_time *scan_time)
{
	const struct thread_sched *sched = &record->sched;

	for (int i = 0; i < scan_time->tick_count; i++) {
		const struct cpu_tick *tick = &scan_time->ticks[i];

		if (tick->tid == record->identity.tid && tick->tick_ns >= sched->in_ns &&
		    (sched->on_cpu || ((int64_t)tick->tick_ns >= scan_time->now_ns &&
				       tick->tick_ns <= sched->out_ns)))
			return tick;
	}
	return NULL;
}

bool record_followed(const struct thread_state *record, const struct live_scan_time *scan_time)
{
	return record->sched.cpu < scan_time->arrived_count &&
	       scan_time->arrived_ns[record->sched.cpu] > (int64_t)record->sched.in_ns;
}

/* True if another thread was seen on the thread's CPU after it had come there, or the CPU is
 * offline: no program runs at the last switch on it. */
static bool is_replaced(const struct thread_state *record, const struct live_scan_time *scan_time)
{
	uint32_t cpu = record->sched.cpu;

	return (cpu < scan_time->offline_count && scan_time->offline[cpu]) ||
	       (cpu < (uint32_t)scan_time->tick_count &&
		record_replaced(record, scan_time->ticks[cpu].tick_ns,
				scan_time->ticks[cpu].tid)) ||
	       record_followed(record, scan_time);
}

enum thread_state_kind task_state_kind(uint32_t state)
{
	if (state & TASK_UNINTERRUPTIBLE_BIT)
		return state & TASK_NOLOAD_BIT ? STATE_IDLE : STATE_DISK;
	if (state & TASK_DISK_LIKE_BITS)
		return STATE_DISK;
	if (state & TASK_INTERRUPTIBLE_BIT)
		return STATE_SLEEP;
	if (state & TASK_STOPPED_TRACED_BITS)
		return STATE_STOPPED;
	if (state & TASK_PARKED_BIT)
		return STATE_PARKED;
	return STATE_RQ; /* preempted, or TASK_WAKING */
}

/* True if the thread had been woken at the scan time. The timer interrupt that wakes the sampler
 * also ends sleeps of other threads of that CPU, up to their timer slack before they were to end:
 * those count as asleep. */
static bool is_woken(const struct thread_state *record, const struct live_scan_time *scan_time)
{
	int64_t wake_ns = (int64_t)record->wake.wake_ns;

	if (wake_ns <= (int64_t)record->sched.out_ns || wake_ns > scan_time->now_ns)
		return false;
	return wake_ns < scan_time->own_wake_ns || wake_ns > scan_time->own_in_ns ||
	       wake_ns > scan_time->own_wake_ns + INTERRUPT_NS ||
	       record->sched.cpu != scan_time->own_cpu;
}

/* True if no switch of the thread was seen. in_ns of a sleeper is when it fell asleep then. */
static bool is_seed(const struct thread_sched *sched)
{
	return sched->known & SCHED_SEEDED && !sched->sequence_done;
}

/* Returns what a thread that was off its CPU at the scan time did then. */
static enum thread_state_kind off_cpu_state(const struct thread_state *record,
					    const struct live_scan_time *scan_time, bool *ambiguous)
{
	const struct thread_sched *sched = &record->sched;
	int64_t wake_ns = (int64_t)record->wake.wake_ns, out_ns = (int64_t)sched->out_ns;
	enum thread_state_kind state = task_state_kind(sched->state);

	/* a thread that was woken before, and came and went since, was waiting for a CPU */
	if (!sched->on_cpu && (int64_t)sched->in_ns > scan_time->now_ns &&
	    wake_ns <= scan_time->now_ns)
		return STATE_RQ;
	/* The thread that the sampler itself took the CPU from would be running. Where it went to
	 * sleep by itself the sampler had to wait for that: without preemption a system call goes
	 * on. It was running when the sampler's timer expired. */
	if (out_ns == scan_time->own_in_ns &&
	    (state == STATE_RQ || (int64_t)sched->in_ns <= scan_time->own_wake_ns))
		return STATE_ON;
	if (state == STATE_RQ || is_woken(record, scan_time))
		return STATE_RQ;
	*ambiguous =
		!sched->on_cpu && wake_ns && wake_ns >= (int64_t)sched->in_ns && wake_ns <= out_ns;
	return state;
}

/* A scan takes time, and threads move meanwhile; a record has enough of the thread's past to say
 * what it did at the scan time, so that all records are of the same time. */
enum thread_state_kind record_state(const struct thread_state *record,
				    const struct live_scan_time *scan_time, bool *ambiguous)
{
	const struct thread_sched *sched = &record->sched;
	int64_t in_ns = (int64_t)sched->in_ns, out_ns = (int64_t)sched->out_ns;

	*ambiguous = false;
	if (sched->exit_state & EXIT_ZOMBIE_BIT)
		return STATE_ZOMBIE;
	if (sched->on_cpu && is_seed(sched)) /* runnable */
		return record_tick(record, scan_time) || !scan_time->tick_count ? STATE_ON
										: STATE_RQ;
	if (sched->on_cpu && in_ns <= scan_time->now_ns) {
		*ambiguous = is_replaced(record, scan_time);
		return STATE_ON;
	}
	if (!sched->on_cpu && out_ns > scan_time->now_ns && in_ns <= scan_time->now_ns &&
	    !is_seed(sched))
		return STATE_ON;
	return off_cpu_state(record, scan_time, ambiguous);
}

bool record_settled(const struct thread_state *record)
{
	static const struct live_scan_time ever = {.now_ns = INT64_MAX};
	bool ambiguous;

	return !record->sched.on_cpu &&
	       !state_row(record_state(record, &ever, &ambiguous))->active && !ambiguous;
}

/* Returns when the present state began. Where the thread's switch out was missed, that was some
 * time after it had come on the CPU. */
static int64_t since_ns(const struct thread_state *record, const struct live_scan_time *scan_time,
			enum thread_state_kind state)
{
	int64_t wake_ns = (int64_t)record->wake.wake_ns, out_ns = (int64_t)record->sched.out_ns;
	int64_t in_ns = (int64_t)record->sched.in_ns;
	bool missed = record->sched.on_cpu && in_ns <= scan_time->now_ns;

	if (state == STATE_ON)
		return in_ns;
	if (state == STATE_RQ && is_woken(record, scan_time) && (!missed || wake_ns > in_ns))
		return wake_ns;
	return missed || is_seed(&record->sched) ? in_ns : out_ns;
}

static int64_t span_ns(int64_t from_ns, int64_t until_ns)
{
	/* a state that began after the scan did has not lasted yet */
	return until_ns > from_ns ? until_ns - from_ns : 0;
}

/* Start times from /proc come in clock ticks: all are rounded to them, because they are part of the
 * identity. */
static int64_t start_in_ticks(uint64_t start_ns)
{
	static int64_t tick_ns;

	if (!tick_ns)
		tick_ns = NS_PER_SECOND / sysconf(_SC_CLK_TCK);
	/* the usual case: a division by a constant takes a tenth of one by a variable */
	if (tick_ns == TICK_USUAL_NS)
		return (int64_t)start_ns / TICK_USUAL_NS * TICK_USUAL_NS;
	return (int64_t)start_ns / tick_ns * tick_ns;
}

int64_t record_start_ns(const struct thread_state *record)
{
	return start_in_ticks(record->identity.start_boot_ns);
}

int64_t record_state_us(const struct thread_state *record, const struct live_scan_time *scan_time,
			enum thread_state_kind state)
{
	return span_ns(since_ns(record, scan_time, state), scan_time->now_ns) / NS_PER_US;
}

void record_sample(const struct thread_state *record, const struct live_scan_time *scan_time,
		   enum thread_state_kind state, struct sample *sample)
{
	const struct thread_identity *identity = &record->identity;

	*sample = *sample_absent();
	sample->thread.tid = identity->tid;
	sample->thread.pid = identity->tgid;
	sample->thread.start_ns = record_start_ns(record);
	sample->thread.kthread = record_is_kthread(record);
	sample->thread.comm = name_of_comm(identity->comm);
	if (identity->known & IDENTITY_FULL)
		sample->thread.uid = identity->uid;
	sample->now.state = state;
	sample->now.state_us = record_state_us(record, scan_time, state);
	/* the first walk that found it so knows no time */
	if (scan_time->of_proc && !sample->now.state_us)
		sample->now.state_us = ABSENT;
	sample->now.cpu = record->sched.cpu;
	if (record->wake.wake_ns)
		sample->waker.tid = record->wake.waker_tid;
}

/* Returns the registers that show a thread's system call at the scan time. NULL: not known.
 * *looked_ns: when a look at the CPU read them; UINT64_MAX: they are those with which the thread
 * left its CPU. */
static const uint64_t *registers_of(const struct thread_state *record,
				    const struct live_scan_time *scan_time,
				    enum thread_state_kind state, uint64_t *looked_ns)
{
	const struct cpu_tick *tick = state == STATE_ON ? record_tick(record, scan_time) : NULL;

	*looked_ns = tick ? tick->tick_ns : UINT64_MAX;
	if (tick)
		return (const uint64_t *)tick->registers;
	if (state == STATE_ON && record->sched.on_cpu)
		return NULL;
	/* otherwise the thread came and went since, and its registers are of a later call */
	if (registers_there(record) &&
	    (state == STATE_ON || (int64_t)record->sched.out_ns <= scan_time->now_ns))
		return (const uint64_t *)record->sched.registers;
	return NULL;
}

/* Words of a record that /proc's call is put into. */
enum {
	CALL_WORD_NR,
	CALL_WORD_COMPAT,
	CALL_WORD_ARG,
	CALL_WORDS = CALL_WORD_ARG + SAMPLE_ARG_COUNT
};
_Static_assert((int)CALL_WORDS <= THREAD_REGISTER_COUNT, "they fit");

void record_put_call(struct thread_state *record, const struct proc_syscall *call, bool compat)
{
	__u64 *words = record->sched.registers;

	words[CALL_WORD_NR] = (__u64)call->nr;
	words[CALL_WORD_COMPAT] = compat;
	memcpy(&words[CALL_WORD_ARG], call->arg, sizeof(call->arg));
	record->sched.registers_sequence = record_out_sequence(record);
	record->sched.known |= SCHED_SWITCHED_OUT;
}

static bool call_of_proc(const struct thread_state *record, struct registers_call *call)
{
	const __u64 *words = record->sched.registers;

	if (record->sched.on_cpu || !registers_there(record))
		return false;
	call->nr = (int32_t)words[CALL_WORD_NR]; /* 32 bits, as the kernel keeps it */
	call->compat = words[CALL_WORD_COMPAT];
	memcpy(call->arg, &words[CALL_WORD_ARG], sizeof(call->arg));
	return true;
}

/* Finds the system call that the thread was in; its number is negative if it was in none.
 * *looked_ns: the last time of which its registers can show one. False: that is not known. */
static bool call_of(const struct thread_state *record, const struct live_scan_time *scan_time,
		    enum thread_state_kind state, struct registers_call *call, uint64_t *looked_ns)
{
	const uint64_t *words;

	*looked_ns = UINT64_MAX;
	if (scan_time->of_proc)
		return call_of_proc(record, call);
	if (!scan_time->registers_known || record_is_kthread(record) || state == STATE_ZOMBIE)
		return false;
	words = registers_of(record, scan_time, state, looked_ns);
	if (!words)
		return false;
	registers_decode(words, scan_time->registers_marked, call);
	return true;
}

bool record_call_compat(const struct thread_state *record, const struct live_scan_time *scan_time,
			enum thread_state_kind state, bool *compat)
{
	struct registers_call call;
	uint64_t looked_ns;
	bool known = call_of(record, scan_time, state, &call, &looked_ns) && call.nr >= 0;

	*compat = known && call.compat;
	return known;
}

void record_call(const struct thread_state *record, const struct live_scan_time *scan_time,
		 enum thread_state_kind state, struct sample *sample, struct lookup_hint *hint)
{
	struct registers_call call;
	uint64_t looked_ns;

	hint->compat = hint->no_call = false;
	if (!call_of(record, scan_time, state, &call, &looked_ns))
		return;
	hint->no_call = call.nr < 0;
	if (hint->no_call)
		return;
	sample->call.nr = call.nr;
	for (int i = 0; i < SAMPLE_ARG_COUNT; i++)
		sample->call.arg[i] = (int64_t)call.arg[i];
	hint->compat = call.compat;
	/* a look from before the call began is of an earlier call */
	if (record->call_ns && record->call_ns <= looked_ns &&
	    (int64_t)record->call_ns <= scan_time->now_ns &&
	    (record->call & ~CALL_COMPAT_BIT) == (uint32_t)call.nr)
		sample->call.us = (scan_time->now_ns - (int64_t)record->call_ns) / NS_PER_US;
}

void record_call_check(struct thread_state *record, const struct thread_state *again)
{
	if (again->sched.tid != record->sched.tid || again->call_ns != record->call_ns ||
	    again->call != record->call)
		record->call_ns = 0;
}

void record_totals(const struct thread_state *record, const struct live_scan_time *scan_time,
		   enum thread_state_kind state, struct live_totals *totals)
{
	const struct thread_sched *sched = &record->sched;
	int64_t out_ns = (int64_t)sched->out_ns, asleep_ns = 0;

	*totals = (struct live_totals){
		.at_ns = scan_time->now_ns,
		.cpu_ns = (int64_t)sched->cpu_ns,
		.runq_ns = (int64_t)sched->runq_ns,
		.disk_ns = (int64_t)sched->disk_ns,
		.sleep_ns = (int64_t)sched->sleep_ns,
		.voluntary_count = (int64_t)sched->voluntary_count,
		.involuntary_count = (int64_t)sched->involuntary_count,
		.switched_ns =
			(int64_t)(sched->in_ns > sched->out_ns ? sched->in_ns : sched->out_ns),
	};
	/* zombies, and threads that ran or waited before their first switch, lack time */
	if (state == STATE_ZOMBIE || scan_time->of_proc)
		return;
	if (!sched->on_cpu || !is_seed(sched))
		totals->until_ns = scan_time->now_ns;
	if (sched->on_cpu) {
		if (state == STATE_ON)
			totals->cpu_ns += span_ns((int64_t)sched->in_ns, scan_time->now_ns);
		return;
	}
	/* sleep and run queue are split as switch_in() in bpf_text/sched_switch.bpf.c will do it */
	if (state != STATE_RQ && (state != STATE_ON || sched->state))
		asleep_ns = span_ns(out_ns, scan_time->now_ns);
	else if (sched->state)
		asleep_ns =
			span_ns(out_ns, (int64_t)sleep_end_ns(record, (uint64_t)scan_time->now_ns));
	totals->runq_ns += span_ns(out_ns, scan_time->now_ns) - asleep_ns;
	if (task_state_kind(sched->state) == STATE_DISK)
		totals->disk_ns += asleep_ns;
	else
		totals->sleep_ns += asleep_ns;
}
