/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/stacks/live_stacks_state.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/names.h"
#include "proc/proc.h"
#include "recording/stack_dict.h"
#include "sample/waker_stack.h"

#include <errno.h>

#define NAMES_LAST_NS (10 * NS_PER_SECOND) /* the end waits so long for names */
#define TASK_EXITING 0x4 /* PF_EXITING, include/linux/sched.h; flags of /proc/TID/stat */
#define WAKERS_MAX 131072
#define WAKER_AGE_NS NS_PER_SECOND /* greatest age of a waker's last stack */

void live_dictionary_add(struct live_stacks *stacks, uint32_t number, int64_t uid)
{
	struct stack *stack = &stacks->table.stacks[number];

	if (!stacks->source->stack_take || stack->listed)
		return;
	stack->listed = true;
	stacks->listed = memory_grow(stacks->listed, &stacks->listed_capacity,
				     stacks->listed_count + 1, sizeof(*stacks->listed));
	stacks->listed[stacks->listed_count++] = (struct listed_stack){uid, number};
}

static bool stack_give(struct live_stacks *stacks, const struct listed_stack *listed, bool whatever)
{
	const uint32_t number = listed->number;
	struct stack_table *table = &stacks->table;
	const struct stack_words words = stack_table_words(table, number, true);
	const struct stack *stack = &table->stacks[number];
	const struct stack_entry entry = {
		.hash = live_stack_hash(stacks, number),
		.kind = stack->kernel ? STACK_DICT_KERNEL : STACK_DICT_USER,
		.func = words.function,
		.funcs = words.path,
		.frames = words.folded,
		.files = words.files,
		.uid = listed->uid,
	};

	if (!stack->reported && !whatever)
		return false;
	stacks->unnamed_count += !stack->reported;
	stacks->source->stack_take(stacks->source->stack_take_to, &entry);
	return true;
}

void live_dictionary_give(struct live_stacks *stacks, bool all)
{
	size_t kept = 0;

	for (size_t i = 0; i < stacks->listed_count; i++)
		if (!stack_give(stacks, &stacks->listed[i], all))
			stacks->listed[kept++] = stacks->listed[i];
	stacks->listed_count = kept;
}

void live_dictionary_anew(struct live_stacks *stacks)
{

	if (!stacks->needs)
		return;
	for (size_t i = 0; i < stacks->table.count; i++)
		stacks->table.stacks[i].listed = false;
	for (size_t i = 0; i < stacks->listed_count; i++)
		stacks->table.stacks[stacks->listed[i].number].listed = true;
}

void live_dictionary_end(struct live_stacks *stacks)
{
	int64_t until_ns = clock_monotonic_ns() + NAMES_LAST_NS;
	size_t before = SIZE_MAX;

	if (!stacks->needs)
		return;
	live_dictionary_give(stacks, false);
	/* only so many names are looked for at a time, those of the first stack among them */
	while (stacks->listed_count && stacks->listed_count < before &&
	       stack_names_wait(stacks->names, until_ns)) {
		before = stacks->listed_count;
		live_dictionary_give(stacks, false);
	}
	live_dictionary_give(stacks, true);
}

struct known_waker {
	struct cache_entry entry; /* key: tid, as users see it */
	int64_t read_ns;	  /* scan time when its stack was read; 0: never */
	int64_t wanted_ns;
	uint32_t user, kernel;
};

void live_wakers_init(struct live_stacks *stacks)
{
	stacks->wakers = (struct cache){.entry_bytes = sizeof(struct known_waker),
					.entries_max = WAKERS_MAX};
}

static struct known_waker *waker_get(struct live_stacks *stacks, int64_t tid)
{
	bool added;
	struct known_waker *waker = cache_get(&stacks->wakers, (uint64_t)tid,
					      stacks->context->now.scan_time.now_ns, &added);

	if (added)
		waker->user = waker->kernel = STACK_NONE;
	return waker;
}

/* True if the sample is off its CPU, and its waker a thread. waker_tid 0: an interrupt of an idle
 * CPU. */
static bool waker_is_thread(const struct sample *sample)
{
	return sample->now.state != STATE_ON && sample->waker.tid != ABSENT && sample->waker.tid;
}

void live_wakers_want(struct live_stacks *stacks, const struct sample *sample)
{
	struct known_waker *waker;

	if (!(stacks->needs & NEED_WAKER_STACK) || !waker_is_thread(sample))
		return;
	waker = waker_get(stacks, sample->waker.tid);
	if (waker->wanted_ns == stacks->context->now.scan_time.now_ns ||
	    waker->read_ns == stacks->context->now.scan_time.now_ns)
		return;
	waker->wanted_ns = stacks->context->now.scan_time.now_ns;
	stacks->wanted = memory_grow(stacks->wanted, &stacks->wanted_capacity,
				     stacks->wanted_count + 1, sizeof(*stacks->wanted));
	stacks->wanted[stacks->wanted_count++] = (uint32_t)sample->waker.tid;
}

/* Notes the stacks of a thread that were read in this scan. */
static void wakers_note(struct live_stacks *stacks, int64_t tid, uint32_t user, uint32_t kernel)
{
	struct known_waker *waker;

	if (!(stacks->needs & NEED_WAKER_STACK))
		return;
	waker = waker_get(stacks, tid);
	waker->read_ns = stacks->context->now.scan_time.now_ns;
	waker->user = user;
	waker->kernel = kernel;
}

bool live_wakers_next(struct live_stacks *stacks, size_t *at, struct thread_state *record)
{
	struct live_context *context = stacks->context;
	struct thread_table *table = &context->kernel.table;

	while (*at < stacks->wanted_count) {
		uint32_t tid = stacks->wanted[(*at)++], key;

		/* in a container the array has other ids: only a waker's sample shows its stack
		 * there */
		if (waker_get(stacks, tid)->read_ns == context->now.scan_time.now_ns ||
		    context->view.translated)
			continue;
		if (!thread_table_key(table, tid, &key) && !thread_table_get(table, key, record) &&
		    record->identity.known & IDENTITY_FULL && !record->sched.on_cpu &&
		    !live_is_own(context, record->identity.tgid))
			return true;
	}
	stacks->wanted_count = 0;
	return false;
}

/* Returns the text of a pair of stacks, made once when all names are known. */
static const char *waker_words(struct live_stacks *stacks, const struct known_waker *waker)
{
	uint64_t key = (uint64_t)waker->user << 32 | waker->kernel;
	struct stack_words user = {0}, kernel = {0};
	const uint64_t *made = index_find(&stacks->waker_words, key);
	const char *text;

	if (made)
		return (const char *)(uintptr_t)*made;
	if (waker->user != STACK_NONE)
		user = stack_table_words(&stacks->table, waker->user, true);
	if (waker->kernel != STACK_NONE)
		kernel = stack_table_words(&stacks->table, waker->kernel, true);
	text = waker_stack_of(user.folded, kernel.folded, name_transient);
	if (waker->user == STACK_NONE || stacks->table.stacks[waker->user].reported)
		*index_put(&stacks->waker_words, key, NULL) = (uintptr_t)text;
	return text;
}

void live_wakers_fill(struct live_stacks *stacks, struct sample *sample)
{
	const struct known_waker *waker;

	if (!(stacks->needs & NEED_WAKER_STACK) || !waker_is_thread(sample))
		return;
	waker = waker_get(stacks, sample->waker.tid);
	if (!waker->read_ns ||
	    stacks->context->now.scan_time.now_ns - waker->read_ns > WAKER_AGE_NS)
		return;
	sample->waker.ustack = live_stack_hash(stacks, waker->user);
	sample->waker.kstack = live_stack_hash(stacks, waker->kernel);
	sample->waker.stack = waker_words(stacks, waker);
	if (waker->user != STACK_NONE)
		live_dictionary_add(stacks, waker->user, sample->thread.uid);
	if (waker->kernel != STACK_NONE)
		live_dictionary_add(stacks, waker->kernel, sample->thread.uid);
}

void live_stacks_note(struct live_stacks *stacks, int64_t tid, uint32_t user, uint32_t kernel)
{
	if (user != STACK_NONE)
		stack_table_want(&stacks->table, user);
	wakers_note(stacks, tid, user, kernel);
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
