/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/stacks/live_wakers.h"
#include "live/stacks/live_dictionary.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/names.h"
#include "sample/waker_stack.h"

#define WAKERS_MAX 131072
#define WAKER_AGE_NS NS_PER_SECOND /* greatest age of a waker's last stack */

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

void live_wakers_note(struct live_stacks *stacks, int64_t tid, uint32_t user, uint32_t kernel)
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
