/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/stacks/live_kept.h"
#include "live/stacks/live_stacks.h"
#include "live/stacks/live_cpu_stacks.h"

#include <errno.h>
#include <string.h>

/* Node.js has 12 KB in one frame (uv__io_poll), and 28 KB in all. Fewer bytes are kept only where
 * fewer are wanted than are copied of threads on a CPU by default. */
#define USER_BYTES 32768
#define USER_BYTES_FEW 16384

static struct kept_stacks_options options_of(const struct live_stacks *stacks)
{
	const int *maps = stacks->context->kernel.compiled.maps;
	int64_t bytes = stacks->context->config.stack_bytes;
	bool own = !stacks->context->config
			    .attach; /* a map has one event for each CPU, of its owner */

	return (struct kept_stacks_options){
		.events_map = own ? maps[KERNEL_MAP_KEPT] : -1,
		.window_map = own ? maps[KERNEL_MAP_WINDOW] : -1,
		.cpus_possible = stacks->context->kernel.host.cpus_possible,
		/* a switch is in the kernel: the copy would be of another part of the stack */
		.user = stacks->needs & NEED_USTACK && live_registers_keep(stacks, REGISTERS_STACK),
		.kernel = stacks->needs & NEED_KSTACK,
		.user_bytes = bytes < USER_BYTES_FEW ? bytes : USER_BYTES,
	};
}

void live_kept_open(struct live_stacks *stacks)
{
	struct kept_stacks_options options = options_of(stacks);
	struct live_kept *kept = &stacks->kept;

	kept->err = -ENOTSUP;
	if (!stacks->needs)
		return;
	kept->err = kept_stacks_open(&kept->stacks, &options);
	if (!kept->err && options.kernel)
		stack_names_want_kernel(stacks->names);
}

void live_kept_close(struct live_kept *kept)
{
	kept_stacks_close(&kept->stacks);
}

void live_kept_move(struct live_stacks *stacks)
{
	struct kept_stacks_options options = options_of(stacks);

	kept_stacks_move(&stacks->kept.stacks, options.events_map, options.window_map);
}

/* Returns the number of the switch out that began what the thread did at the scan time, or ended it
 * if it ran. */
static uint64_t sequence_at(const struct thread_state *record,
			    const struct live_scan_time *scan_time, bool running)
{
	const struct thread_sched *sched = &record->sched;
	uint64_t out = sched->sequence_done - sched->on_cpu;

	if (running)
		return sched->on_cpu && (int64_t)sched->in_ns <= scan_time->now_ns
			       ? sched->sequence_done + 1
			       : out;
	/* the thread came and went since */
	return (int64_t)sched->out_ns > scan_time->now_ns ? out - 2 : out;
}

/* Stacks of a thread that were kept or copied. */
struct stacks_found {
	const struct user_registers *registers; /* NULL: not known */
	const void *stack;
	size_t stack_bytes;
	const uint64_t *chain; /* call chain of the kernel stack; NULL: it is text */
	uint32_t chain_count;
	const char *text;
};

static bool stacks_find(const struct live_stacks *stacks, uint32_t tid, uint64_t sequence,
			struct stacks_found *found)
{
	static struct cpu_sample seen;
	const struct stack_copy *copy;
	const char *bytes;

	if (!stacks->context->now.capture) /* no scan is worked on */
		return false;
	if (kept_stacks_find(&stacks->kept.stacks, &stacks->context->now.capture->kept, tid,
			     sequence, &seen)) {
		*found = (struct stacks_found){.registers = seen.registers_known ? &seen.registers
										 : NULL,
					       .stack = seen.stack,
					       .stack_bytes = seen.stack_bytes,
					       .chain = seen.kernel,
					       .chain_count = seen.kernel_count};
		return true;
	}
	copy = stack_copies_find(&stacks->context->now.capture->copies, tid, sequence);
	if (!copy)
		return false;
	bytes = stacks->context->now.capture->copies.bytes;
	*found = (struct stacks_found){.registers = copy->registers_known ? &copy->registers : NULL,
				       .stack = copy->stack_bytes ? bytes + copy->stack_at : NULL,
				       .stack_bytes = copy->stack_bytes,
				       .text = copy->kernel_known ? bytes + copy->kernel_at : NULL};
	return true;
}

/* True if a walk may have used files of another program than that of the scan time: the thread has
 * moved since, and may have executed one. While it does that, only the walk's end shows it. */
static bool other_program(struct live_stacks *stacks, const struct thread_state *record,
			  const struct stack_walk *walk)
{
	struct thread_table *table = &stacks->context->kernel.table;
	struct thread_state now;

	if (record_still(table, record))
		return false;
	if (walk->maps_new && walk->end != WALK_WHOLE && walk->end != WALK_CUT &&
	    walk->end != WALK_DEEP)
		return true;
	return !thread_table_get(table, record->key, &now) && now.sched.tid == record->sched.tid &&
	       (now.identity.known != record->identity.known ||
		memcmp(now.identity.comm, record->identity.comm, sizeof(now.identity.comm)) != 0);
}

static bool user_take(struct live_stacks *stacks, const struct thread_state *record,
		      const struct stacks_found *found, bool cut, uint32_t *user)
{
	static struct stack_walk walk;
	const struct stack_thread thread = live_stack_thread(stacks, record);
	bool python;

	*user = STACK_NONE;
	if (!(stacks->needs & NEED_USTACK) || record_is_kthread(record))
		return true;
	/* functions of Python are read from memory as it is now, if the thread still stands */
	if (!found->registers ||
	    (!cut && stacks->python_wanted && python_frames_expect(&stacks->python, thread.pid)))
		return false;
	unwinder_walk_copied(&stacks->unwinder, &thread, found->registers, found->stack,
			     found->stack_bytes, &walk);
	python = stacks->python_wanted && python_frames_lack(&stacks->python, &thread, &walk);
	if ((!cut && (walk.end != WALK_WHOLE || python)) || other_program(stacks, record, &walk)) {
		stacks->unwinder.ended[walk.end]--; /* the walk that is to come counts */
		return false;
	}
	stacks->python.moved_count += python;
	*user = stack_of_walk(&stacks->table, &walk);
	return true;
}

static bool kernel_take(struct live_stacks *stacks, const struct stacks_found *found, bool running,
			uint32_t *number)
{
	static struct kernel_stack kernel;
	const struct kernel_symbols *symbols;

	*number = STACK_NONE;
	if (!(stacks->needs & NEED_KSTACK))
		return true;
	if (found->text) {
		kernel_stack_parse(&kernel, found->text);
	} else {
		symbols = found->chain ? live_kernel_symbols(stacks) : NULL;
		if (!symbols ||
		    !kernel_stack_of_switch(&kernel, symbols, found->chain, found->chain_count))
			return false;
	}
	if (running)
		kernel_stack_resume(&kernel);
	*number = stack_of_kernel(&stacks->table, &kernel);
	return true;
}

bool live_kept_stacks(struct live_stacks *stacks, const struct thread_state *record, bool running,
		      bool cut, uint32_t *user, uint32_t *kernel)
{
	struct stacks_found found;

	return stacks_find(stacks, record->sched.tid,
			   sequence_at(record, &stacks->context->now.scan_time, running), &found) &&
	       kernel_take(stacks, &found, running, kernel) &&
	       user_take(stacks, record, &found, cut, user);
}

const char *live_kept_way(const struct live_stacks *stacks)
{
	if (!stacks->needs)
		return "none";
	return stacks->kept.err ? "copied at once"
				: "perf samples of switches before it, or copied at once";
}
