/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/stacks/live_copies.h"
#include "live/stacks/live_stacks.h"
#include "base/clock.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#define COPIES_MAX ((size_t)4 * REQUESTS_MAX)
#define BYTES_MAX (4u << 20) /* bytes of all copies of a scan */
#define USER_BYTES 32768u    /* bytes of a stack's top */
#define KERNEL_TEXT_BYTES 4096
#define OLDEST_NS NS_PER_SECOND /* greatest age of a switch out: older ones' threads sleep on */

void live_copies_open(struct live_stacks *stacks)
{
	struct live_copies *copies = &stacks->copies;
	const struct thread_memory *memory = &stacks->unwinder.memory;

	if (!stacks->needs)
		return;
	*copies = (struct live_copies){
		.user = stacks->needs & NEED_USTACK,
		.kernel = stacks->needs & NEED_KSTACK,
		.proc_root = stacks->proc_root,
		.requester = &stacks->context->kernel.requester,
	};
	thread_memory_init(&copies->memory, memory->proc_root, memory->by_file, USER_BYTES);
}

void live_copies_close(struct live_copies *copies)
{
	thread_memory_done(&copies->memory);
	index_clear(&copies->known);
	index_clear(&copies->again);
	*copies = (struct live_copies){0};
}

void live_copies_forget(struct live_copies *copies)
{
	index_empty(&copies->known);
}

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
