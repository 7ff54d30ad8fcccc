/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/stacks/live_stacks.h"
#include "live/stacks/live_dictionary.h"
#include "live/stacks/live_stacks_state.h"
#include "live/stacks/live_wakers.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/names.h"
#include "kernel/registers.h"
#include "live/context/live_limits.h"
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
	stacks->python_wanted = context->config.python;
	python_frames_init(&stacks->python, PROC, &stacks->modules,
			   live_parser(context, PARSER_MEMORY));
	stacks->names = stack_names_new(PROC, &stacks->modules, live_parser(context, PARSER_NAMES));
	stack_table_init(&stacks->table, &stacks->modules, stacks->names);
	stacks->threads = (struct cache){.entry_bytes = sizeof(struct known_stacks),
					 .entries_max = THREADS_KEPT_MAX};
	live_wakers_init(stacks);
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

void live_stacks_note(struct live_stacks *stacks, int64_t tid, uint32_t user, uint32_t kernel)
{
	if (user != STACK_NONE)
		stack_table_want(&stacks->table, user);
	live_wakers_note(stacks, tid, user, kernel);
}

void live_stacks_set(struct live_stacks *stacks, size_t sample, uint32_t user, uint32_t kernel)
{

	stacks->samples[sample].stack.ustack = live_stack_hash(stacks, user);
	stacks->samples[sample].stack.kstack = live_stack_hash(stacks, kernel);
	live_stacks_note(stacks, stacks->samples[sample].thread.tid, user, kernel);
	if (user == STACK_NONE && kernel == STACK_NONE)
		return;
	stacks->pending = memory_grow(stacks->pending, &stacks->pending_capacity,
				      stacks->pending_count + 1, sizeof(*stacks->pending));
	stacks->pending[stacks->pending_count++] = (struct pending_stack){sample, user, kernel};
	if (user != STACK_NONE)
		live_dictionary_add(stacks, user, stacks->samples[sample].thread.uid);
	if (kernel != STACK_NONE)
		live_dictionary_add(stacks, kernel, stacks->samples[sample].thread.uid);
}

static void pending_fill(struct live_stacks *stacks, const struct pending_stack *reporting)
{
	struct sample *sample = &stacks->samples[reporting->sample];
	bool folded = stacks->needs & (NEED_STACK | NEED_UFILES);
	struct stack_words user = {0}, kernel = {0};
	bool named = true;

	if (reporting->user != STACK_NONE) {
		user = stack_table_words(&stacks->table, reporting->user, folded);
		named = stacks->table.stacks[reporting->user].reported;
	}
	if (reporting->kernel != STACK_NONE) {
		kernel = stack_table_words(&stacks->table, reporting->kernel, folded);
		named = named && stacks->table.stacks[reporting->kernel].reported;
	}
	sample->stack.names_open = !named;
	sample->stack.ufunc = user.function;
	sample->stack.ufuncs = user.path;
	sample->stack.kfunc = kernel.function;
	sample->stack.kfuncs = kernel.path;
	sample->stack.ufiles = user.files;
	if (folded)
		sample->stack.both = stack_of_halves(user.folded, kernel.folded, name_transient);
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
	live_waiting_take(stacks);
	for (size_t at = 0; live_wakers_next(stacks, &at, &waker);)
		live_stacks_add_other(stacks, &waker);
	live_waiting_take(stacks);
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

void live_stacks_describe(const struct live_stacks *stacks, struct source_status *status)
{
	const struct host *host = &stacks->context->kernel.host;
	const uint64_t *ended = stacks->unwinder.ended;
	const int lacking = parsers_lacking(stacks->context->parsers);
	struct stack_names_counts names;

	if (!stacks->needs)
		return;
	names = stack_names_count(stacks->names);
	source_status_miss_any(
		status,
		"processes that read files for stacks and ended over one (others went "
		"on, and the requests that they had are lost)",
		parsers_lost(stacks->context->parsers));
	source_status_miss_any(status,
			       "processes that had started those which read files, and ended "
			       "(another one went on)",
			       parsers_replaced(stacks->context->parsers));
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
	source_status_miss_any(status, "stacks not kept: the thread ran meanwhile",
			       stacks->moved_count);
	source_status_miss_any(status,
			       "stacks not read for lack of time, of processes with many threads "
			       "that run again and again",
			       stacks->late_count);
	source_status_miss_any(status, "user stacks cut off before their outermost frame",
			       ended[WALK_DEEP] + ended[WALK_LOST] + ended[WALK_OUTSIDE]);
	source_status_miss_any(status,
			       "user stacks cut off at memory that is not there, or not in RAM "
			       "(swapped out, or held back by its process: it is not read)",
			       ended[WALK_UNREAD]);
	source_status_miss_any(status,
			       host->cap_ptrace ? "user stacks that could not be read (refused "
						  "by a security module, or by a filter of "
						  "system calls)"
						: "user stacks that could not be read (needs "
						  "CAP_SYS_PTRACE)",
			       stacks->refused_count);
	source_status_miss_any(status,
			       "user stacks that could not be read (their process was ending, or "
			       "began another program)",
			       stacks->unread_count);
	source_status_miss_any(status, "user stacks of threads whose registers were not known",
			       stacks->unknown_count);
	source_status_miss_any(status, "stacks of threads that were just ending",
			       stacks->ended_count);
	source_status_miss_any(status,
			       "stacks in the dictionary whose names were not found in time",
			       stacks->unnamed_count);
	source_status_miss_any(status,
			       "stacks of Python versions other than 3.11 to 3.14 with a GIL, "
			       "without their functions",
			       stacks->python.unknown_count);
	source_status_miss_any(status,
			       "stacks without their Python functions: the thread was on a CPU, "
			       "or ran meanwhile",
			       stacks->python.moved_count);
	source_status_miss_any(status, "stacks with Python functions that could not be read",
			       stacks->python.broken_count);
	source_status_miss_any(status,
			       "stacks without their Python functions, as their process has too "
			       "many to be read at once",
			       stacks->python.late_count);
	source_status_miss_any(
		status, "user stacks of threads on a CPU longer than their copy (--stack-bytes)",
		ended[WALK_CUT]);
	source_status_miss_any(status,
			       host->cap_admin ? "kernel stacks that could not be read (refused "
						 "by a security module)"
					       : "kernel stacks that could not be read (needs "
						 "CAP_SYS_ADMIN)",
			       stacks->kernel_refused_count);
	source_status_miss_any(status, "kernel stacks that could not be read",
			       stacks->kernel_unread_count);
	source_status_miss_any(status, "files with more functions than are read", names.cut);
	source_status_miss_any(status,
			       "processes whose perf-PID.map is no plain file, or another user's",
			       names.refused);
	source_status_miss_any(status,
			       "tables of files dropped for lack of memory (they are read again)",
			       names.unloaded + stacks->modules.shrunk);
	source_status_miss_any(status,
			       "times that a file was not read at once for lack of time or memory "
			       "(its stacks are, in a later scan)",
			       stacks->late_files);
	source_status_miss_any(status, "stacks of samples that did not fit in the memory for them",
			       stacks->table.refused);
	source_status_miss_any(status,
			       "times that the memory for stacks was full and they were forgotten",
			       stacks->clear_count);
}
