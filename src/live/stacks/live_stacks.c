/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/stacks/live_stacks.h"
#include "base/clock.h"
#include "base/names.h"
#include "kernel/registers.h"
#include "kernel/task_query.h"
#include "live/context/live_limits.h"
#include "live/stacks/live_cpu_stacks.h"
#include "proc/proc.h"
#include "sample/waker_stack.h"

#include <errno.h>
#include <stdlib.h>

#define THREADS_KEPT_MAX 131072
#define NAMES_FIRST_NS (300 * NS_PER_MS) /* the first scan waits so long for names */
#define FILES_KEEP_NS (500 * NS_PER_MS)	 /* time between looks for files that no process maps */
#define THREAD_IDLE_NS (30 * NS_PER_SECOND)
#define OPENING_NS_MAX \
	(10 * NS_PER_MS) /* most time for opening new files in a scan, but for the first one */

/* Stacks that were read of a thread since its last switch. */
struct known_stacks {
	struct cache_entry entry; /* key: tid */
	int64_t start_ns;
	uint64_t sequence;
	uint32_t user, kernel;
	bool displaced; /* stacks as if the thread ran on */
};

/* --- stacks of threads off their CPUs: as the last switch kept them, as they were read since, or
 * read now. Stacks that are to be read wait, so that the registers of many are requested at once.
 */

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

/* Fills the stacks of the sample as a switch out kept them. False: none did. */
static bool add_kept(struct live_stacks *stacks, const struct thread_state *record, size_t sample)
{
	uint32_t user, kernel;

	if (!live_kept_stacks(stacks, record, stacks->samples[sample].now.state == STATE_ON, true,
			      &user, &kernel))
		return false;
	live_stacks_set(stacks, sample, user, kernel);
	return true;
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
	unwinder_walk(&stacks->unwinder, &thread, &registers, NULL, &walk);
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

/* True if the thread has not run since its record was copied. The kernel has a record of a thread
 * that was asleep before tsnap came from its first switch on where ids are translated. */
static bool sleeps_on(const struct live_stacks *stacks, const struct thread_state *record)
{
	return record->sched.tid
		       ? record_still(&stacks->context->kernel.table, record)
		       : live_seed_waiting(&stacks->context->seed, record->identity.tid) != NULL;
}

static void stacks_read(struct live_stacks *stacks, uint32_t at)
{
	const struct stack_wait *wait = &stacks->waiting[at];
	const uint64_t put_off = stacks->modules.refused + stacks->python.late_count;
	uint32_t user = STACK_NONE, kernel = STACK_NONE;
	int user_err = 0, kernel_err = 0;

	/* a thread that runs again has nothing to read */
	if (!sleeps_on(stacks, &wait->record)) {
		stacks->moved_count += !kept_set(stacks, wait, true);
		return;
	}
	if (stacks->needs & NEED_USTACK && !wait->kthread)
		user = user_read(stacks, at, &user_err);
	if (stacks->needs & NEED_KSTACK)
		kernel = kernel_read(stacks, wait, &kernel_err);
	if (!sleeps_on(stacks, &wait->record)) {
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

static void waiting_take(struct live_stacks *stacks)
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
		waiting_take(stacks);
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
		stacks->cpu.gone_count += !live_cpu_stacks_add(stacks, record, sample) &&
					  !add_kept(stacks, record, sample);
		return;
	}
	/* the thread's present stack is no longer that of the scan time */
	if (moved_since(stacks, record, running)) {
		if (!add_kept(stacks, record, sample))
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

/* Reads the stacks of a thread off its CPU that has no sample: a waker. */
static void other_add(struct live_stacks *stacks, const struct thread_state *record)
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

/* --- all of them */

void live_stacks_init(struct live_stacks *stacks, struct live_context *context,
		      struct source *source, struct sample *samples)
{
	stacks->context = context;
	stacks->source = source;
	stacks->samples = samples;
	stacks->needs = context->wants.needs & NEEDS_STACKS;
	if (!stacks->needs)
		return;
	stacks->proc_root = PROC;
	module_table_init(&stacks->modules, live_parser(context, PARSER_TABLES));
	unwinder_init(&stacks->unwinder, PROC, &stacks->modules,
		      live_parser(context, PARSER_MEMORY), STACK_COPY_BYTES);
	stacks->unwinder.returns = task_query_returns;
	stacks->python_wanted = context->config.python;
	python_frames_init(&stacks->python, PROC, &stacks->modules,
			   live_parser(context, PARSER_MEMORY));
	stacks->names = stack_names_new(PROC, &stacks->modules, live_parser(context, PARSER_NAMES));
	stack_table_init(&stacks->table, &stacks->modules, stacks->names);
	stacks->threads = (struct cache){.entry_bytes = sizeof(struct known_stacks),
					 .entries_max = THREADS_KEPT_MAX};
	live_wakers_init(stacks);
}

void live_stacks_open(struct live_stacks *stacks)
{
	live_cpu_stacks_open(stacks);
	live_kept_open(stacks);
}

void live_stacks_move(struct live_stacks *stacks)
{
	live_kept_move(stacks);
	live_cpu_stacks_move(stacks);
}

/* Clears all that has numbers of stacks or frames, or transient names. */
static void words_clear(struct live_stacks *stacks)
{
	stack_names_forget(stacks->names);
	stack_table_clear(&stacks->table);
	cache_done(&stacks->threads);
	cache_done(&stacks->wakers);
	index_clear(&stacks->waker_words);
	stacks->wanted_count = 0;
	python_frames_clear(&stacks->python);
	stacks->waiting_count = 0;
	stacks->pending_count = 0;
	stacks->listed_count = 0;
}

static void stacks_clear(struct live_stacks *stacks)
{
	if (!stacks->needs)
		return;
	words_clear(stacks);
	stack_names_clear(stacks->names);
	unwinder_forget(&stacks->unwinder);
	module_table_clear(&stacks->modules);
}

void live_stacks_forget(struct live_stacks *stacks)
{
	live_dictionary_give(stacks, true);
	stacks_clear(stacks);
}

void live_stacks_forget_words(struct live_stacks *stacks)
{
	live_dictionary_give(stacks, true);
	words_clear(stacks);
	stacks->clear_count++;
}

void live_stacks_done(struct live_stacks *stacks)
{
	cpu_sampler_close(&stacks->cpu.sampler);
	live_kept_close(stacks);
	if (!stacks->needs)
		return;
	stacks_clear(stacks);
	stack_names_free(stacks->names);
	unwinder_done(&stacks->unwinder);
	free(stacks->pending);
	free(stacks->listed);
	free(stacks->wanted);
	stacks->needs = 0;
}

void live_stacks_words_fill(struct live_stacks *stacks, uint32_t user_number,
			    uint32_t kernel_number, struct sample *sample)
{
	bool folded = stacks->needs & (NEED_STACK | NEED_UFILES);
	struct stack_words user = {0}, kernel = {0};
	bool named = true;

	if (user_number != STACK_NONE) {
		user = stack_table_words(&stacks->table, user_number, folded);
		named = stacks->table.stacks[user_number].reported;
	}
	if (kernel_number != STACK_NONE) {
		kernel = stack_table_words(&stacks->table, kernel_number, folded);
		named = named && stacks->table.stacks[kernel_number].reported;
	}
	sample->stack.ustack = live_stack_hash(stacks, user_number);
	sample->stack.kstack = live_stack_hash(stacks, kernel_number);
	sample->stack.names_open = !named;
	sample->stack.ufunc = user.function;
	sample->stack.ufuncs = user.path;
	sample->stack.kfunc = kernel.function;
	sample->stack.kfuncs = kernel.path;
	sample->stack.ufiles = user.files;
	if (folded)
		sample->stack.both = stack_of_halves(user.folded, kernel.folded, name_transient);
}

static void pending_fill(struct live_stacks *stacks, const struct pending_stack *reporting)
{
	struct sample *sample = &stacks->samples[reporting->sample];

	live_stacks_words_fill(stacks, reporting->user, reporting->kernel, sample);
	live_wakers_fill(stacks, sample);
}

/* A scan waits for names of functions for half of the time that is left over anyhow; at the start,
 * when the most is to be read, the next tick waits for them. */
static void names_wait(struct live_stacks *stacks)
{
	int64_t now_ns = clock_monotonic_ns();
	int64_t next_ns = stacks->context->now.scan_time.now_ns + stacks->context->period_ns;

	if (stacks->context->now.scan_count) {
		stack_names_wait(stacks->names, now_ns + (next_ns - now_ns) / 2);
		return;
	}
	stack_names_wait(stacks->names, stacks->context->now.scan_time.now_ns + NAMES_FIRST_NS);
	sampler_excuse(stacks->context->sampler);
}

static void modules_keep(struct live_stacks *stacks)
{
	const bool due = stacks->context->now.scan_time.now_ns - stacks->kept_ns >= FILES_KEEP_NS;

	if (!due && !stacks->modules.refused)
		return;
	if (due) {
		stacks->kept_ns = stacks->context->now.scan_time.now_ns;
		unwinder_drop_ended(&stacks->unwinder);
	}
	if (module_table_mark(&stacks->modules, due) && stack_names_close(stacks->names))
		module_table_close(&stacks->modules);
}

/* Frees memory for stacks and modules. A process that has so many costs the others new walks and
 * names, which is quick, as nothing is read of files again. */
static void stacks_keep(struct live_stacks *stacks)
{
	struct module_table *modules = &stacks->modules;
	bool full = module_table_full(modules);

	if (full || stack_table_full(&stacks->table))
		live_stacks_forget_words(stacks);
	if (!full)
		return;
	module_table_mark_old(modules);
	if (!stack_names_close(stacks->names))
		return; /* done in a later scan */
	unwinder_forget_runtimes(&stacks->unwinder);
	module_table_forget(modules);
}

void live_stacks_fill_pending(struct live_stacks *stacks)
{
	struct thread_state waker;

	if (!stacks->needs)
		return;
	waiting_take(stacks);
	for (size_t at = 0; live_wakers_next(stacks, &at, &waker);)
		other_add(stacks, &waker);
	waiting_take(stacks);
	names_wait(stacks);
	for (size_t i = 0; i < stacks->pending_count; i++)
		pending_fill(stacks, &stacks->pending[i]);
	stacks->pending_count = 0;
	if (stacks->context->now.housekeeping) {
		live_dictionary_give(stacks, false);
		cache_sweep(&stacks->threads, stacks->context->now.scan_time.now_ns,
			    THREAD_IDLE_NS);
		cache_sweep(&stacks->wakers, stacks->context->now.scan_time.now_ns, THREAD_IDLE_NS);
		unwinder_sweep(&stacks->unwinder, stacks->context->now.scan_time.now_ns);
		python_frames_sweep(&stacks->python, stacks->context->now.scan_time.now_ns);
	}
	modules_keep(stacks);
	stacks_keep(stacks);
	stacks->late_files += stacks->modules.refused;
	module_table_next_scan(&stacks->modules, OPENING_NS_MAX);
}

void live_stacks_ways(const struct live_stacks *stacks, struct text *to)
{
	text_add_format(to, "stacks on CPU: %s\n", live_cpu_stacks_way(&stacks->cpu));
	text_add_format(to, "stacks at the scan time: %s\n", live_kept_way(stacks));
}

void live_stacks_describe(const struct live_stacks *stacks, struct source_status *status)
{
	const struct host *host = &stacks->context->kernel.host;
	const struct parsers *parsers = stacks->context->parsers;
	const uint64_t *ended = stacks->unwinder.ended;
	const int lacking = parsers_lacking(parsers);
	const struct stack_names_counts names =
		stacks->needs ? stack_names_count(stacks->names) : (struct stack_names_counts){0};
	const struct {
		uint64_t count;
		const char *what;
	} missed[] = {
		{parsers_lost(parsers),
		 "processes that read files for stacks and ended over one (others went "
		 "on, and the requests that they had are lost)"},
		{parsers_replaced(parsers),
		 "processes that had started those which read files, and ended "
		 "(another one went on)"},
		{stacks->moved_count, "stacks not kept: the thread ran meanwhile"},
		{stacks->late_count,
		 "stacks not read for lack of time, of processes with many threads "
		 "that run again and again"},
		{ended[WALK_DEEP] + ended[WALK_LOST] + ended[WALK_OUTSIDE],
		 "user stacks cut off before their outermost frame"},
		{ended[WALK_UNREAD],
		 "user stacks cut off at memory that is not there, or not in RAM "
		 "(swapped out, or held back by its process: it is not read)"},
		{stacks->refused_count, host->cap_ptrace
						? "user stacks that could not be read (refused "
						  "by a security module, or by a filter of "
						  "system calls)"
						: "user stacks that could not be read (needs "
						  "CAP_SYS_PTRACE)"},
		{stacks->unread_count,
		 "user stacks that could not be read (their process was ending, or "
		 "began another program)"},
		{stacks->unknown_count, "user stacks of threads whose registers were not known"},
		{stacks->ended_count, "stacks of threads that were just ending"},
		{stacks->unnamed_count,
		 "stacks in the dictionary whose names were not found in time"},
		{stacks->python.unknown_count,
		 "stacks of Python versions other than 3.11 to 3.14 with a GIL, "
		 "without their functions"},
		{stacks->python.moved_count,
		 "stacks without their Python functions: the thread was on a CPU, "
		 "or ran meanwhile"},
		{stacks->python.broken_count,
		 "stacks with Python functions that could not be read"},
		{stacks->python.late_count,
		 "stacks without their Python functions, as their process has too "
		 "many to be read at once"},
		{ended[WALK_CUT],
		 "user stacks of threads on a CPU longer than their copy (--stack-bytes)"},
		{stacks->kernel_refused_count,
		 host->cap_admin ? "kernel stacks that could not be read (refused "
				   "by a security module)"
				 : "kernel stacks that could not be read (needs "
				   "CAP_SYS_ADMIN)"},
		{stacks->kernel_unread_count, "kernel stacks that could not be read"},
		{names.cut, "files with more functions than are read"},
		{names.refused, "processes whose perf-PID.map is no plain file, or another user's"},
		{names.unloaded + stacks->modules.shrunk,
		 "tables of files dropped for lack of memory (they are read again)"},
		{stacks->late_files,
		 "times that a file was not read at once for lack of time or memory "
		 "(its stacks are, in a later scan)"},
		{stacks->table.refused,
		 "stacks of samples that did not fit in the memory for them"},
		{stacks->clear_count,
		 "times that the memory for stacks was full and they were forgotten"},
	};

	if (!stacks->needs)
		return;
	for (size_t i = 0; i < sizeof(missed) / sizeof(missed[0]); i++)
		source_status_miss_any(status, missed[i].what, missed[i].count);
	if (lacking == -ECHILD)
		source_status_lack(status, "kind of data: functions and tables of files not yet "
					   "read (the processes that read them, and the one that "
					   "starts these, have ended)");
	else if (lacking)
		source_status_lack(status,
				   live_limits_words("kind of data: functions and tables of files "
						     "not yet read",
						     "a process that reads them can't be started",
						     -lacking));
	live_cpu_stacks_describe(stacks, status);
}
