/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/stacks/live_stacks.h"
#include "live/stacks/live_dictionary.h"
#include "live/live_state.h"
#include "live/stacks/live_wakers.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/names.h"
#include "kernel/registers.h"
#include "proc/proc.h"
#include "sample/waker_stack.h"
#include "unwind/file_service.h"

#include <errno.h>
#include <stdlib.h>

#define THREADS_KEPT_MAX 131072
#define NAMES_FIRST_NS (300 * NS_PER_MS) /* that the first scan waits for names */
#define TASK_EXITING 0x4 /* PF_EXITING, include/linux/sched.h; flags of /proc/TID/stat */
#define FILES_KEEP_NS (500 * NS_PER_MS) /* between two looks for files that nobody has mapped */
#define THREAD_IDLE_NS (30 * NS_PER_SECOND)
#define OPENING_NS_MAX \
	(10 * NS_PER_MS) /* in a scan, but for the first one, into files that are new */

/* What was read of a thread since its last switch. */
struct known_stacks {
	struct cache_entry entry; /* key: tid */
	int64_t start_ns;
	uint64_t sequence;
	uint32_t user, kernel;
	bool displaced; /* told as if it ran on */
};

static struct parser *parser_at(const struct live_stacks *stacks, enum parser_place place)
{
	return stacks->parsers ? &stacks->parsers->parser[place] : NULL;
}

void live_stacks_init(struct live_stacks *stacks, const char *proc_root, uint64_t needs,
		      bool python, bool free)
{
	stacks->needs = needs & NEEDS_STACKS;
	if (!stacks->needs)
		return;
	stacks->proc_root = proc_root;
	if (stacks->needs & (NEED_USTACK | NEED_WAKER_STACK))
		stacks->parsers = parsers_begin(file_service, free);
	module_table_init(&stacks->modules, parser_at(stacks, PARSER_TABLES));
	unwinder_init(&stacks->unwinder, proc_root, &stacks->modules, STACK_COPY_BYTES);
	stacks->python_wanted = python;
	python_frames_init(&stacks->python, proc_root, &stacks->modules);
	stacks->names =
		stack_names_new(proc_root, &stacks->modules, parser_at(stacks, PARSER_NAMES));
	stack_table_init(&stacks->table, &stacks->modules, stacks->names);
	stacks->threads = (struct cache){.entry_bytes = sizeof(struct known_stacks),
					 .entries_max = THREADS_KEPT_MAX};
	live_wakers_init(stacks);
}

/* All that has numbers of stacks or frames, or lent names. */
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
	stacks->telling_count = 0;
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

void live_stacks_forget(struct live *live)
{
	live_dictionary_give(live, true);
	stacks_clear(&live->stacks);
}

void live_stacks_forget_words(struct live *live)
{
	live_dictionary_give(live, true);
	words_clear(&live->stacks);
	live->stacks.clear_count++;
}

void live_stacks_done(struct live_stacks *stacks)
{
	if (!stacks->needs)
		return;
	stacks_clear(stacks);
	stack_names_free(stacks->names);
	unwinder_done(&stacks->unwinder);
	parsers_end(stacks->parsers);
	free(stacks->tellings);
	free(stacks->listed);
	free(stacks->wanted);
	stacks->needs = 0;
}

int64_t live_stack_hash(const struct live_stacks *stacks, uint32_t stack)
{
	int64_t hash = stack == STACK_NONE ? ABSENT : (int64_t)stacks->table.stacks[stack].hash;

	return hash == ABSENT && stack != STACK_NONE ? hash + 1 : hash;
}

/* The words of its stack are wanted at this scan's end, of a waker without a sample as well. */
static void thread_note(struct live *live, int64_t tid, uint32_t user, uint32_t kernel)
{
	if (user != STACK_NONE)
		stack_table_want(&live->stacks.table, user);
	live_wakers_note(live, tid, user, kernel);
}

void live_stacks_set(struct live *live, size_t sample, uint32_t user, uint32_t kernel)
{
	struct live_stacks *stacks = &live->stacks;

	live->samples[sample].ustack = live_stack_hash(stacks, user);
	live->samples[sample].kstack = live_stack_hash(stacks, kernel);
	thread_note(live, live->samples[sample].tid, user, kernel);
	if (user == STACK_NONE && kernel == STACK_NONE)
		return;
	stacks->tellings = memory_grow(stacks->tellings, &stacks->telling_capacity,
				       stacks->telling_count + 1, sizeof(*stacks->tellings));
	stacks->tellings[stacks->telling_count++] = (struct stack_telling){sample, user, kernel};
	if (user != STACK_NONE)
		live_dictionary_add(live, user);
	if (kernel != STACK_NONE)
		live_dictionary_add(live, kernel);
}

static void waiting_take(struct live *live);

static void thread_set(struct live *live, const struct stack_wait *wait, uint32_t user,
		       uint32_t kernel)
{
	if (wait->sample != SAMPLE_NONE)
		live_stacks_set(live, wait->sample, user, kernel);
	else
		thread_note(live, wait->record.identity.tid, user, kernel);
}

/* What is known of a thread stays so until its next switch. */
static void thread_know(struct live *live, const struct stack_wait *wait, uint32_t user,
			uint32_t kernel)
{
	struct known_stacks *known;
	bool added;

	known = cache_get(&live->stacks.threads, wait->record.identity.tid, live->moment.now_ns,
			  &added);
	known->start_ns = wait->start_ns;
	known->sequence = wait->record.sched.sequence_done;
	known->displaced = wait->displaced;
	known->user = user;
	known->kernel = kernel;
}

/* Sets the stacks that the thread's switch out kept. cut: also such as are longer than that. False:
 * it has kept none. */
static bool kept_set(struct live *live, const struct stack_wait *wait, bool cut)
{
	const uint64_t unopened = live->stacks.modules.refused;
	uint32_t user, kernel;

	if (!live_kept_stacks(live, &wait->record, wait->displaced, cut, &user, &kernel))
		return false;
	thread_set(live, wait, user, kernel);
	/* else there was no room or time for a file: the next scan has some */
	if (live->stacks.modules.refused == unopened && !wait->record.sched.on_cpu)
		thread_know(live, wait, user, kernel);
	return true;
}

bool live_stacks_of_moment(const struct live *live)
{
	return live->stacks.needs && !live->stacks.python_wanted;
}

bool live_stacks_add_kept(struct live *live, const struct thread_state *record, size_t sample)
{
	uint32_t user, kernel;

	if (!live_kept_stacks(live, record, live->samples[sample].state == DOING_ON, true, &user,
			      &kernel))
		return false;
	live_stacks_set(live, sample, user, kernel);
	return true;
}

/* wait is the next one of those that wait, or takes its stacks at once. */
static void thread_add(struct live *live, const struct stack_wait *wait)
{
	struct live_stacks *stacks = &live->stacks;
	const struct known_stacks *known;
	bool added;

	known = cache_get(&stacks->threads, wait->record.identity.tid, live->moment.now_ns, &added);
	if (!added && known->displaced == wait->displaced && known->start_ns == wait->start_ns &&
	    known->sequence == wait->record.sched.sequence_done) {
		stacks->reused_count++;
		thread_set(live, wait, known->user, known->kernel);
		return;
	}
	if (kept_set(live, wait, false))
		return;
	if (stacks->until_ns && clock_monotonic_ns() >= stacks->until_ns) {
		stacks->late_count += !kept_set(live, wait, true);
		return;
	}
	if (++stacks->waiting_count == ASK_MAX)
		waiting_take(live);
}

/* Whether a thread has begun to run after the moment, or, if it ran then, to sleep. */
static bool moved_since(const struct live *live, const struct thread_state *record, bool running)
{
	if (running)
		return task_state_doing(record->sched.state) != DOING_RQ;
	return record->sched.on_cpu || (int64_t)record->sched.out_ns > live->moment.now_ns;
}

void live_stacks_add(struct live *live, const struct thread_state *record, size_t sample)
{
	struct live_stacks *stacks = &live->stacks;
	struct stack_wait *wait = &stacks->waiting[stacks->waiting_count];
	bool running = live->samples[sample].state == DOING_ON;

	if (!stacks->needs || live->samples[sample].state == DOING_ZOMBIE)
		return;
	if (running && record->sched.on_cpu) {
		live_cpu_stacks_add(live, record, sample);
		return;
	}
	/* its present stack is no longer that of the moment */
	if (moved_since(live, record, running)) {
		if (!live_stacks_add_kept(live, record, sample))
			*(running ? &live->cpu_stacks.gone_count : &stacks->moved_count) += 1;
		return;
	}
	live_wakers_want(live, &live->samples[sample]);
	*wait = (struct stack_wait){.record = *record,
				    .sample = sample,
				    .start_ns = live->samples[sample].start_ns,
				    .kthread = live->samples[sample].kthread == 1,
				    .displaced = running};
	thread_add(live, wait);
}

void live_stacks_add_other(struct live *live, const struct thread_state *record)
{
	struct stack_wait *wait = &live->stacks.waiting[live->stacks.waiting_count];
	struct sample sample;

	record_sample(record, &live->moment, DOING_SLEEP, &sample);
	*wait = (struct stack_wait){.record = *record,
				    .sample = SAMPLE_NONE,
				    .start_ns = sample.start_ns,
				    .kthread = sample.kthread == 1};
	thread_add(live, wait);
}

/* Registers of a thread that the kernel's programs don't know any of: it has slept since before
 * they were there, or they can't be asked (before 5.10). /proc tells where its code and stack are;
 * the record may have some more. 0 or -errno. */
static int registers_from_proc(const struct live_stacks *stacks, const struct thread_state *record,
			       struct user_registers *registers)
{
	struct proc_syscall call;
	int err = proc_syscall_read(stacks->proc_root, record->identity.tgid, record->identity.tid,
				    &call);

	if (err)
		return err;
	if (call.running || !call.sp)
		return -ENODATA;
	if (registers_there(record) &&
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

/* The kernel may refuse one that is on its way out, whoever asks. */
static bool thread_is_ending(const struct live *live, const struct thread_identity *identity)
{
	struct proc_stat stat;

	/* who is not there may be hidden (hidepid) */
	if (proc_stat_read(PROC, identity->tgid, identity->tid, &stat))
		return live->proc_whole;
	return stat.flags & TASK_EXITING;
}

void live_stacks_unread(struct live *live, const struct thread_identity *identity, int user_err,
			int kernel_err)
{
	struct live_stacks *stacks = &live->stacks;

	if (!user_err && !kernel_err)
		return;
	if (user_err == -ENODATA) {
		stacks->unknown_count++;
		user_err = 0;
	}
	if ((user_err || kernel_err) && thread_is_ending(live, identity)) {
		stacks->ended_count++;
		return;
	}
	stacks->unread_count += user_err != 0;
	stacks->kernel_refused_count += kernel_err != 0;
}

struct stack_thread live_stack_thread(const struct live *live, const struct thread_state *record)
{
	return (struct stack_thread){record->identity.tgid, record->identity.tid,
				     record_start_ns(record), live->moment.now_ns,
				     record->identity.known >> IDENTITY_PROGRAM_SHIFT};
}

static uint32_t user_read(struct live *live, uint32_t at, int *err)
{
	static struct stack_walk walk;
	struct live_stacks *stacks = &live->stacks;
	const struct stack_wait *wait = &stacks->waiting[at];
	const struct stack_thread thread = live_stack_thread(live, &wait->record);
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
		python_frames_add(&stacks->python, &thread, &stacks->unwinder.memory, &walk);
	return stack_of_walk(&stacks->table, &walk);
}

static uint32_t kernel_read(struct live *live, const struct stack_wait *wait, int *err)
{
	static struct kernel_stack kernel;
	struct live_stacks *stacks = &live->stacks;

	*err = kernel_stack_read(&kernel, stacks->proc_root, wait->record.identity.tid);
	if (*err)
		return STACK_NONE;
	if (wait->displaced)
		kernel_stack_resume(&kernel);
	return stack_of_kernel(&stacks->table, &kernel);
}

static void stacks_read(struct live *live, uint32_t at)
{
	struct live_stacks *stacks = &live->stacks;
	const struct stack_wait *wait = &stacks->waiting[at];
	const uint64_t put_off = stacks->modules.refused + stacks->python.late_count;
	uint32_t user = STACK_NONE, kernel = STACK_NONE;
	int user_err = 0, kernel_err = 0;

	/* nothing to read of one that is on its way again */
	if (!record_still(&live->kernel.table, &wait->record)) {
		stacks->moved_count += !kept_set(live, wait, true);
		return;
	}
	if (stacks->needs & NEED_USTACK && !wait->kthread)
		user = user_read(live, at, &user_err);
	if (stacks->needs & NEED_KSTACK)
		kernel = kernel_read(live, wait, &kernel_err);
	if (!record_still(&live->kernel.table, &wait->record)) {
		stacks->moved_count += !kept_set(live, wait, true);
		return;
	}
	live_stacks_unread(live, &wait->record.identity, user_err, kernel_err);
	/* else there was no room or time for a part of it: the next scan has some */
	if (stacks->modules.refused + stacks->python.late_count == put_off)
		thread_know(live, wait, user, kernel);
	thread_set(live, wait, user, kernel);
}

/* Of those that wait. The thread that scans asks, too, unless this is in a scan. */
static void registers_ask(struct live *live, const struct thread_state *const *records)
{
	struct live_stacks *stacks = &live->stacks;

	pthread_mutex_lock(sampler_asking(live->sampler));
	stack_registers_ask(&live->kernel.asker, records, stacks->waiting_count);
	for (uint32_t i = 0; i < stacks->waiting_count; i++)
		stacks->waiting[i].registers_known = stack_registers_get(
			&live->kernel.asker, records[i], i, &stacks->waiting[i].registers);
	pthread_mutex_unlock(sampler_asking(live->sampler));
}

static void waiting_take(struct live *live)
{
	struct live_stacks *stacks = &live->stacks;
	const struct thread_state *records[ASK_MAX];

	if (!stacks->waiting_count)
		return;
	for (uint32_t i = 0; i < stacks->waiting_count; i++)
		records[i] = &stacks->waiting[i].record;
	if (stacks->needs & NEED_USTACK)
		registers_ask(live, records);
	for (uint32_t i = 0; i < stacks->waiting_count; i++)
		stacks_read(live, i);
	stacks->waiting_count = 0;
}

static void telling_tell(struct live *live, const struct stack_telling *telling)
{
	struct live_stacks *stacks = &live->stacks;
	struct sample *sample = &live->samples[telling->sample];
	bool folded = stacks->needs & NEED_STACK;
	struct stack_words user = {NULL, NULL, NULL}, kernel = user;

	if (telling->user != STACK_NONE)
		user = stack_table_words(&stacks->table, telling->user, folded);
	if (telling->kernel != STACK_NONE)
		kernel = stack_table_words(&stacks->table, telling->kernel, folded);
	sample->ufunc = user.function;
	sample->ufuncs = user.path;
	sample->kfunc = kernel.function;
	sample->kfuncs = kernel.path;
	if (folded)
		sample->stack = stack_of_halves(user.folded, kernel.folded, name_lent);
	live_wakers_tell(live, sample);
}

/* A scan waits for names of functions for half of the time that is left over anyhow; at the start,
 * when the most is to be read, the beat waits for them. */
static void names_wait(struct live *live)
{
	int64_t now_ns = clock_monotonic_ns();
	int64_t next_ns = live->moment.now_ns + live->period_ns;

	if (live->scan_count) {
		stack_names_wait(live->stacks.names, now_ns + (next_ns - now_ns) / 2);
		return;
	}
	stack_names_wait(live->stacks.names, live->moment.now_ns + NAMES_FIRST_NS);
	sampler_excuse(live->sampler);
}

static void modules_keep(struct live *live)
{
	struct live_stacks *stacks = &live->stacks;
	const bool due = live->moment.now_ns - stacks->kept_ns >= FILES_KEEP_NS;

	if (!due && !stacks->modules.refused)
		return;
	if (due) {
		stacks->kept_ns = live->moment.now_ns;
		unwinder_drop_ended(&stacks->unwinder);
	}
	if (module_table_mark(&stacks->modules, due) && stack_names_close(stacks->names))
		module_table_close(&stacks->modules);
}

/* Makes room for stacks and modules. Whoever made so many has others' walked and named again, which
 * is quick, as nothing is read of files again. */
static void stacks_keep(struct live *live)
{
	struct live_stacks *stacks = &live->stacks;
	struct module_table *modules = &stacks->modules;
	bool full = module_table_full(modules);

	if (full || stack_table_full(&stacks->table))
		live_stacks_forget_words(live);
	if (!full)
		return;
	module_table_mark_old(modules);
	if (!stack_names_close(stacks->names))
		return; /* in a later scan */
	unwinder_forget_runtimes(&stacks->unwinder);
	module_table_forget(modules);
}

void live_stacks_tell(struct live *live)
{
	struct live_stacks *stacks = &live->stacks;

	if (!stacks->needs)
		return;
	waiting_take(live);
	live_wakers_read(live);
	waiting_take(live);
	names_wait(live);
	for (size_t i = 0; i < stacks->telling_count; i++)
		telling_tell(live, &stacks->tellings[i]);
	stacks->telling_count = 0;
	if (live->keep_house) {
		live_dictionary_give(live, false);
		cache_sweep(&stacks->threads, live->moment.now_ns, THREAD_IDLE_NS);
		cache_sweep(&stacks->wakers, live->moment.now_ns, THREAD_IDLE_NS);
		unwinder_sweep(&stacks->unwinder, live->moment.now_ns);
		python_frames_sweep(&stacks->python, live->moment.now_ns);
	}
	modules_keep(live);
	stacks_keep(live);
	stacks->late_files += stacks->modules.refused;
	module_table_next_scan(&stacks->modules, OPENING_NS_MAX);
}

void live_stacks_describe(const struct live_stacks *stacks, struct source_facts *facts)
{
	const uint64_t *ended = stacks->unwinder.ended;
	struct stack_names_counts names;

	if (!stacks->needs)
		return;
	names = stack_names_count(stacks->names);
	source_facts_miss_any(
		facts,
		"processes that read files for stacks and ended over one (others went "
		"on, and what was asked of them then is lost)",
		parsers_lost(stacks->parsers));
	source_facts_miss_any(facts,
			      "process that starts those and ended (files and functions that were "
			      "not known then are not)",
			      parsers_ended(stacks->parsers));
	source_facts_miss_any(facts, "stacks not kept: the thread ran meanwhile",
			      stacks->moved_count);
	source_facts_miss_any(facts,
			      "stacks not read for want of time, of processes with many threads "
			      "that run again and again",
			      stacks->late_count);
	source_facts_miss_any(facts, "user stacks that end before their outermost frame",
			      ended[WALK_DEEP] + ended[WALK_LOST] + ended[WALK_OUTSIDE] +
				      ended[WALK_UNREAD]);
	source_facts_miss_any(facts, "user stacks that could not be read (needs CAP_SYS_PTRACE)",
			      stacks->unread_count);
	source_facts_miss_any(facts, "user stacks of threads whose registers were not known",
			      stacks->unknown_count);
	source_facts_miss_any(facts, "stacks of threads that were just ending",
			      stacks->ended_count);
	source_facts_miss_any(facts, "stacks in the dictionary whose names were not found in time",
			      stacks->unnamed_count);
	source_facts_miss_any(
		facts,
		"stacks of Pythons that are not 3.11 to 3.14 with a GIL, without their functions",
		stacks->python.unknown_count);
	source_facts_miss_any(facts, "stacks with Python functions that could not be read",
			      stacks->python.broken_count);
	source_facts_miss_any(facts,
			      "stacks without their Python functions, as their process has too "
			      "many to be read at once",
			      stacks->python.late_count);
	source_facts_miss_any(facts,
			      "user stacks of threads on a CPU that are longer than their copy "
			      "(--stack-bytes)",
			      ended[WALK_CUT]);
	source_facts_miss_any(facts, "kernel stacks that could not be read (needs CAP_SYS_ADMIN)",
			      stacks->kernel_refused_count);
	source_facts_miss_any(facts, "files with more functions than are read", names.cut);
	source_facts_miss_any(facts,
			      "processes whose perf-PID.map is no plain file, or another user's",
			      names.refused);
	source_facts_miss_any(facts,
			      "tables of files given back for want of room (they are read again)",
			      names.unloaded + stacks->modules.shrunk);
	source_facts_miss_any(facts,
			      "times that a file was not read at once for want of time or room "
			      "(its stacks are, in a later scan)",
			      stacks->late_files);
	source_facts_miss_any(facts, "stacks of samples that found no room in the memory for them",
			      stacks->table.refused);
	source_facts_miss_any(facts,
			      "times that the memory for stacks was full and they were forgotten",
			      stacks->clear_count);
}
