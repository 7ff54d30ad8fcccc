/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/stacks/live_kept.h"
#include "base/clock.h"
#include "base/memory.h"
#include "live/stacks/live_cpu_stacks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define COPIES_MAX ((size_t)4 * REQUESTS_MAX)
#define BYTES_MAX (4u << 20) /* bytes of all copies of a scan */
/* Bytes of a stack's top. Node.js has 12 KB in one frame (uv__io_poll), and 28 KB in all. Switches
 * keep fewer only where fewer are wanted than are copied of threads on a CPU by default. */
#define USER_BYTES 32768u
#define USER_BYTES_FEW 16384
#define KERNEL_TEXT_BYTES 4096
#define OLDEST_NS NS_PER_SECOND /* greatest age of a switch out: older ones' threads sleep on */

static void know(struct live_copies *copies, uint32_t tid, uint64_t sequence)
{
	*index_put(&copies->again, tid, NULL) = sequence;
}

/* True if the thread's stacks must be copied: they are not known, and they are wanted. */
static bool copy_due(struct live_copies *copies, const struct filter *filter,
		     const struct live_capture *capture, const struct thread_state *record)
{
	uint32_t tid = record->sched.tid;
	uint64_t sequence = record->sched.sequence_done;
	const uint64_t *known;
	bool ambiguous;

	if (record->sched.on_cpu || !(record->identity.known & IDENTITY_FULL) ||
	    (record_is_kthread(record) && !copies->kernel))
		return false;
	known = index_find(&copies->known, tid);
	if ((known && *known == sequence) || kept_stacks_known(&capture->kept, tid, sequence)) {
		know(copies, tid, sequence);
		return false;
	}
	return capture->scan_time.now_ns - (int64_t)record->sched.out_ns <= OLDEST_NS &&
	       filter_wants_state(filter, record_state(record, &capture->scan_time, &ambiguous));
}

static int record_compare(const void *one, const void *other)
{
	const struct thread_state *a = *(const struct thread_state *const *)one,
				  *b = *(const struct thread_state *const *)other;
	bool a_woken = a->wake.wake_ns > a->sched.out_ns || !a->sched.state,
	     b_woken = b->wake.wake_ns > b->sched.out_ns || !b->sched.state;

	if (a_woken != b_woken)
		return a_woken ? -1 : 1;
	return a->sched.out_ns > b->sched.out_ns ? -1 : a->sched.out_ns < b->sched.out_ns;
}

/* Collects the records whose stacks are due. Threads that will run first come first. */
static size_t records_due(struct live_copies *copies, const struct filter *filter,
			  const struct live_capture *capture, const struct thread_state **due)
{
	size_t count = 0;

	for (size_t i = 0; i < capture->count && count < COPIES_MAX; i++)
		if (copy_due(copies, filter, capture, &capture->threads[i].record))
			due[count++] = &capture->threads[i].record;
	qsort(due, count, sizeof(*due), record_compare);
	return count;
}

static void user_copy(struct live_copies *copies, struct stack_copies *made,
		      const struct thread_state *record, uint32_t at, struct stack_copy *copy)
{
	struct thread_memory *memory = &copies->memory;
	uint64_t last;

	memory->pid = record->identity.tgid;
	if (!stack_registers_get(copies->requester, record, at, &copy->registers) ||
	    thread_memory_begin(memory, record->identity.tid, copy->registers.sp))
		return;
	/* all of it, or as much as there is */
	thread_memory_read(memory, copy->registers.sp + USER_BYTES - sizeof(last), &last,
			   sizeof(last));
	memcpy(stack_copies_reserve(made, memory->top_bytes), memory->top, memory->top_bytes);
	copy->stack_at = stack_copies_use(made, memory->top_bytes);
	copy->stack_bytes = memory->top_bytes;
	copy->registers_known = true;
}

static void kernel_copy(const struct live_copies *copies, struct stack_copies *made,
			const struct thread_state *record, struct stack_copy *copy)
{
	ssize_t length = kernel_stack_read_text(copies->proc_root, record->identity.tid,
						stack_copies_reserve(made, KERNEL_TEXT_BYTES),
						KERNEL_TEXT_BYTES);

	if (length < 0 || length == KERNEL_TEXT_BYTES - 1)
		return;
	copy->kernel_at = stack_copies_use(made, (size_t)length + 1);
	copy->kernel_known = true;
}

/* Copies the stacks of a thread. False: it has run, so what was copied may be of neither time. */
static bool record_copy(struct live_copies *copies, struct stack_copies *made,
			struct thread_table *table, const struct thread_state *record, uint32_t at)
{
	struct stack_copy copy = {.tid = record->sched.tid,
				  .sequence = record->sched.sequence_done};

	if (copies->user && !record_is_kthread(record))
		user_copy(copies, made, record, at, &copy);
	if (copies->kernel)
		kernel_copy(copies, made, record, &copy);
	if (!record_still(table, record))
		return false;
	stack_copies_add(made, &copy);
	know(copies, copy.tid, copy.sequence);
	return true;
}

/* Copies the stacks that are due. Returns how many threads had run before they were copied. */
static size_t due_copy(struct live_copies *copies, struct stack_copies *made,
		       struct thread_table *table, const struct thread_state *const *due,
		       size_t count)
{
	int64_t end_ns = clock_monotonic_ns() + REALTIME_BUDGET_NS;
	size_t batch, lost = 0;

	for (size_t from = 0; from < count; from += batch) {
		batch = count - from < REQUESTS_MAX ? count - from : REQUESTS_MAX;
		if (copies->user)
			stack_registers_request(copies->requester, due + from, (uint32_t)batch);
		for (uint32_t i = 0; i < batch; i++) {
			if (clock_monotonic_ns() > end_ns || made->used > BYTES_MAX)
				return lost;
			lost += !record_copy(copies, made, table, due[from + i], i);
		}
	}
	return lost;
}

size_t live_copies_make(void *of, struct thread_table *table, const struct filter *filter,
			struct live_capture *capture)
{
	const struct thread_state *due[COPIES_MAX];
	struct live_copies *copies = of;
	struct index before = copies->known;
	size_t lost;

	index_empty(&copies->again);
	lost = due_copy(copies, &capture->copies, table, due,
			records_due(copies, filter, capture, due));
	copies->known = copies->again;
	copies->again = before;
	return lost;
}

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
	const struct thread_memory *memory = &stacks->unwinder.memory;
	struct live_kept *kept = &stacks->kept;

	kept->err = -ENOTSUP;
	if (!stacks->needs)
		return;
	kept->err = kept_stacks_open(&kept->stacks, &options);
	if (!kept->err && options.kernel)
		stack_names_want_kernel(stacks->names);
	stacks->copies = (struct live_copies){
		.user = stacks->needs & NEED_USTACK,
		.kernel = stacks->needs & NEED_KSTACK,
		.proc_root = stacks->proc_root,
		.requester = &stacks->context->kernel.requester,
	};
	thread_memory_init(&stacks->copies.memory, memory->proc_root, memory->by_file, USER_BYTES);
}

void live_kept_close(struct live_stacks *stacks)
{
	kept_stacks_close(&stacks->kept.stacks);
	thread_memory_done(&stacks->copies.memory);
	index_clear(&stacks->copies.known);
	index_clear(&stacks->copies.again);
	stacks->copies = (struct live_copies){0};
}

void live_kept_move(struct live_stacks *stacks)
{
	struct kept_stacks_options options = options_of(stacks);

	kept_stacks_move(&stacks->kept.stacks, options.events_map, options.window_map);
	index_empty(&stacks->copies.known);
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
	struct stack_bytes stack;
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
					       .stack = {seen.stack, seen.stack_bytes},
					       .chain = seen.kernel,
					       .chain_count = seen.kernel_count};
		return true;
	}
	copy = stack_copies_find(&stacks->context->now.capture->copies, tid, sequence);
	if (!copy)
		return false;
	bytes = stacks->context->now.capture->copies.bytes;
	*found = (struct stacks_found){
		.registers = copy->registers_known ? &copy->registers : NULL,
		.stack = {copy->stack_bytes ? bytes + copy->stack_at : NULL, copy->stack_bytes},
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
	unwinder_walk(&stacks->unwinder, &thread, found->registers, &found->stack, &walk);
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
