/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/stacks/live_stacks.h"
#include "live/stacks/live_cpu_stacks.h"
#include "live/stacks/live_kept.h"
#include "live/stacks/live_wakers.h"
#include "base/clock.h"
#include "kernel/registers.h"
#include "proc/proc.h"

#include <errno.h>

#define TASK_EXITING 0x4 /* PF_EXITING, include/linux/sched.h; flags of /proc/TID/stat */

static void thread_set(struct live_stacks *stacks, const struct stack_wait *wait, uint32_t user,
		       uint32_t kernel)
{
	if (wait->sample != SAMPLE_NONE)
		live_stacks_set(stacks, wait->sample, user, kernel);
	else
		live_stacks_note(stacks, wait->record.identity.tid, user, kernel);
}

/* Notes the stacks of a thread, which are known until its next switch. */
static void thread_know(struct live_stacks *stacks, const struct stack_wait *wait, uint32_t user,
			uint32_t kernel)
{
	struct known_stacks *known;
	bool added;

	known = cache_get(&stacks->threads, wait->record.identity.tid,
			  stacks->context->now.scan_time.now_ns, &added);
	known->start_ns = wait->start_ns;
	known->sequence = wait->record.sched.sequence_done;
	known->displaced = wait->displaced;
	known->user = user;
	known->kernel = kernel;
}

/* Sets the stacks that the thread's switch out kept. cut: also stacks that are longer than what was
 * kept, or lack their functions of Python. False: none were kept. */
static bool kept_set(struct live_stacks *stacks, const struct stack_wait *wait, bool cut)
{
	const uint64_t put_off = stacks->modules.refused + stacks->python.moved_count;
	uint32_t user, kernel;

	if (!live_kept_stacks(stacks, &wait->record, wait->displaced, cut, &user, &kernel))
		return false;
	thread_set(stacks, wait, user, kernel);
	/* else there was no memory or time for a part of it: the next scan has some */
	if (stacks->modules.refused + stacks->python.moved_count == put_off &&
	    !wait->record.sched.on_cpu)
		thread_know(stacks, wait, user, kernel);
	return true;
}

bool live_stacks_add_kept(struct live_stacks *stacks, const struct thread_state *record,
			  size_t sample)
{
	uint32_t user, kernel;

	if (!live_kept_stacks(stacks, record, stacks->samples[sample].now.state == STATE_ON, true,
			      &user, &kernel))
		return false;
	live_stacks_set(stacks, sample, user, kernel);
	return true;
}

/* Sets the stacks of wait at once if they are known or kept. Otherwise wait becomes the last one of
 * waiting, unless it is too late to read stacks. */
static void thread_add(struct live_stacks *stacks, const struct stack_wait *wait)
{
	const struct known_stacks *known;
	bool added;

	known = cache_get(&stacks->threads, wait->record.identity.tid,
			  stacks->context->now.scan_time.now_ns, &added);
	if (!added && known->displaced == wait->displaced && known->start_ns == wait->start_ns &&
	    known->sequence == wait->record.sched.sequence_done) {
		stacks->reused_count++;
		thread_set(stacks, wait, known->user, known->kernel);
		return;
	}
	if (kept_set(stacks, wait, false))
		return;
	if (stacks->until_ns && clock_monotonic_ns() >= stacks->until_ns) {
		stacks->late_count += !kept_set(stacks, wait, true);
		return;
	}
	if (++stacks->waiting_count == REQUESTS_MAX)
		live_waiting_take(stacks);
}

/* True if a thread has begun to run after the scan time, or, if it ran then, to sleep. */
static bool moved_since(const struct live_stacks *stacks, const struct thread_state *record,
			bool running)
{
	if (running)
		return task_state_kind(record->sched.state) != STATE_RQ;
	return record->sched.on_cpu ||
	       (int64_t)record->sched.out_ns > stacks->context->now.scan_time.now_ns;
}

void live_stacks_add(struct live_stacks *stacks, const struct thread_state *record, size_t sample)
{
	struct stack_wait *wait;
	bool running;

	if (!stacks->needs || stacks->samples[sample].now.state == STATE_ZOMBIE)
		return;
	wait = &stacks->waiting[stacks->waiting_count];
	running = stacks->samples[sample].now.state == STATE_ON;
	if (running && record->sched.on_cpu) {
		live_cpu_stacks_add(stacks, record, sample);
		return;
	}
	/* the thread's present stack is no longer that of the scan time */
	if (moved_since(stacks, record, running)) {
		if (!live_stacks_add_kept(stacks, record, sample))
			*(running ? &stacks->cpu.gone_count : &stacks->moved_count) += 1;
		return;
	}
	live_wakers_want(stacks, &stacks->samples[sample]);
	*wait = (struct stack_wait){.record = *record,
				    .sample = sample,
				    .start_ns = stacks->samples[sample].thread.start_ns,
				    .kthread = stacks->samples[sample].thread.kthread == 1,
				    .displaced = running};
	thread_add(stacks, wait);
}

void live_stacks_add_other(struct live_stacks *stacks, const struct thread_state *record)
{
	struct stack_wait *wait = &stacks->waiting[stacks->waiting_count];
	struct sample sample;

	record_sample(record, &stacks->context->now.scan_time, STATE_SLEEP, &sample);
	*wait = (struct stack_wait){.record = *record,
				    .sample = SAMPLE_NONE,
				    .start_ns = sample.thread.start_ns,
				    .kthread = sample.thread.kthread == 1};
	thread_add(stacks, wait);
}

/* Reads a sleeper's stack pointer where the saved one is an earlier entry's. 0: not known. */
static uint64_t sp_of_call(const struct live_stacks *stacks, const struct thread_state *record)
{
	struct proc_stat stat;

	return proc_stat_read(stacks->proc_root, record->identity.tgid, record->identity.tid, &stat)
		       ? 0
		       : stat.sp;
}

/* Reads the registers of a thread of which the kernel's programs know none: it has slept since
 * before they were there, or they can't be run on request (before 5.10). /proc shows where its code
 * and stack are; the record may have some more. 0 or -errno. */
static int registers_from_proc(const struct live_stacks *stacks, const struct thread_state *record,
			       struct user_registers *registers)
{
	struct proc_syscall call;
	int err = proc_syscall_read(stacks->proc_root, record->identity.tgid, record->identity.tid,
				    &call);

	if (err)
		return err;
	if (call.running)
		return -ENODATA;
	/* all were saved where it entered the kernel otherwise, as by a page fault */
	if (call.nr >= 0 && !live_registers_keep(stacks, REGISTERS_STACK))
		call.sp = sp_of_call(stacks, record);
	if (!call.sp)
		return -ENODATA;
	if (live_registers_keep(stacks, REGISTERS_PRESERVED) && registers_there(record) &&
	    registers_user_few((const uint64_t *)record->sched.registers, call.sp, registers) &&
	    registers->ip == call.pc)
		return 0;
	*registers = (struct user_registers){.ip = call.pc, .sp = call.sp};
	return 0;
}

int walk_error(const struct stack_walk *walk)
{
	return walk->end == WALK_REFUSED ? -EPERM : walk->end == WALK_GONE ? -ESRCH : 0;
}

/* True if the thread is ending: the kernel may refuse its stacks to any reader then. */
static bool thread_is_ending(const struct live_stacks *stacks,
			     const struct thread_identity *identity)
{
	struct proc_stat stat;

	/* a thread that is not in /proc may be hidden (hidepid) */
	if (proc_stat_read(PROC, identity->tgid, identity->tid, &stat))
		return stacks->context->view.proc_whole;
	return stat.flags & TASK_EXITING;
}

static bool is_refusal(int err)
{
	return err == -EPERM || err == -EACCES;
}

void live_stacks_unread(struct live_stacks *stacks, const struct thread_identity *identity,
			int user_err, int kernel_err)
{

	if (!user_err && !kernel_err)
		return;
	if (user_err == -ENODATA) {
		stacks->unknown_count++;
		user_err = 0;
	}
	if ((user_err || kernel_err) && thread_is_ending(stacks, identity)) {
		stacks->ended_count++;
		return;
	}
	if (user_err)
		*(is_refusal(user_err) ? &stacks->refused_count : &stacks->unread_count) += 1;
	if (kernel_err)
		*(is_refusal(kernel_err) ? &stacks->kernel_refused_count
					 : &stacks->kernel_unread_count) += 1;
}

struct stack_thread live_stack_thread(const struct live_stacks *stacks,
				      const struct thread_state *record)
{
	return (struct stack_thread){record->identity.tgid, record->identity.tid,
				     record_start_ns(record), stacks->context->now.scan_time.now_ns,
				     record->identity.known >> IDENTITY_PROGRAM_SHIFT};
}

static uint32_t user_read(struct live_stacks *stacks, uint32_t at, int *err)
{
	static struct stack_walk walk;
	const struct stack_wait *wait = &stacks->waiting[at];
	const struct stack_thread thread = live_stack_thread(stacks, &wait->record);
	struct user_registers registers;

	if (wait->registers_known)
		registers = wait->registers;
	else
		*err = registers_from_proc(stacks, &wait->record, &registers);
	if (*err)
		return STACK_NONE;
	unwinder_walk(&stacks->unwinder, &thread, &registers, &walk);
	*err = walk_error(&walk);
	if (stacks->python_wanted)
		python_frames_add(&stacks->python, &thread, &walk);
	return stack_of_walk(&stacks->table, &walk);
}

static uint32_t kernel_read(struct live_stacks *stacks, const struct stack_wait *wait, int *err)
{
	static struct kernel_stack kernel;

	*err = kernel_stack_read(&kernel, stacks->proc_root, wait->record.identity.tid);
	if (*err)
		return STACK_NONE;
	if (wait->displaced)
		kernel_stack_resume(&kernel);
	return stack_of_kernel(&stacks->table, &kernel);
}

static void stacks_read(struct live_stacks *stacks, uint32_t at)
{
	const struct stack_wait *wait = &stacks->waiting[at];
	const uint64_t put_off = stacks->modules.refused + stacks->python.late_count;
	uint32_t user = STACK_NONE, kernel = STACK_NONE;
	int user_err = 0, kernel_err = 0;

	/* a thread that runs again has nothing to read */
	if (!record_still(&stacks->context->kernel.table, &wait->record)) {
		stacks->moved_count += !kept_set(stacks, wait, true);
		return;
	}
	if (stacks->needs & NEED_USTACK && !wait->kthread)
		user = user_read(stacks, at, &user_err);
	if (stacks->needs & NEED_KSTACK)
		kernel = kernel_read(stacks, wait, &kernel_err);
	if (!record_still(&stacks->context->kernel.table, &wait->record)) {
		stacks->moved_count += !kept_set(stacks, wait, true);
		return;
	}
	live_stacks_unread(stacks, &wait->record.identity, user_err, kernel_err);
	/* else there was no memory or time for a part of it: the next scan has some */
	if (stacks->modules.refused + stacks->python.late_count == put_off)
		thread_know(stacks, wait, user, kernel);
	thread_set(stacks, wait, user, kernel);
}

/* Requests the registers of threads in waiting. The thread that scans requests some, too, unless
 * this is in a scan. */
static void registers_request(struct live_stacks *stacks, const struct thread_state *const *records)
{

	pthread_mutex_lock(sampler_requesting(stacks->context->sampler));
	stack_registers_request(&stacks->context->kernel.requester, records, stacks->waiting_count);
	for (uint32_t i = 0; i < stacks->waiting_count; i++)
		stacks->waiting[i].registers_known =
			stack_registers_get(&stacks->context->kernel.requester, records[i], i,
					    &stacks->waiting[i].registers);
	pthread_mutex_unlock(sampler_requesting(stacks->context->sampler));
}

void live_waiting_take(struct live_stacks *stacks)
{
	const struct thread_state *records[REQUESTS_MAX];

	if (!stacks->waiting_count)
		return;
	for (uint32_t i = 0; i < stacks->waiting_count; i++)
		records[i] = &stacks->waiting[i].record;
	if (stacks->needs & NEED_USTACK)
		registers_request(stacks, records);
	for (uint32_t i = 0; i < stacks->waiting_count; i++)
		stacks_read(stacks, i);
	stacks->waiting_count = 0;
}
