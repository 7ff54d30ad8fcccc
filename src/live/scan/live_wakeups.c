/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/scan/live_wakeups.h"
#include "live/context/live_context.h"

#define FOLLOWED_MAX 65536

struct reported {
	struct live_wakeups *wakeups;
	const struct wake_reader *reader;
	wake_callback *take;
	void *to;
};

/* True if an interrupt entered the kernel at that return address. */
static bool entry_interrupts(struct live_wakeups *wakeups, uint64_t address)
{
	uint64_t *known = index_put(&wakeups->entries, address, NULL);
	const char *name;

	if (!*known) {
		if (!wakeups->symbols_read)
			kernel_symbols_read(&wakeups->symbols, "/proc/kallsyms");
		wakeups->symbols_read = true;
		name = kernel_symbol_find(&wakeups->symbols, address - 1);
		*known = name && kernel_entry_interrupts(name) ? 1 : 2;
	}
	return *known == 1;
}

static void row_take(void *to, const struct wake_row *row)
{
	const struct reported *reported = to;
	struct wakeup wakeup = {
		.tid = row->tid,
		.waker_tid = row->waker_tid ? row->waker_tid : ABSENT,
		.slept_ns = (int64_t)row->slept_ns,
		.wake_ns = (int64_t)row->wake_ns,
	};

	/* a thread that users don't see has no sample */
	if (!row->tid)
		return;
	wakeup.interrupt = wake_row_interrupts(reported->reader, row) ||
			   (row->entry && entry_interrupts(reported->wakeups, row->entry));
	reported->take(reported->to, &wakeup);
}

int64_t live_wakeups_take(struct live_wakeups *wakeups, struct live_context *context,
			  wake_callback *take, void *to)
{
	struct reported reported = {wakeups, &context->kernel.wakes, take, to};

	return wake_reader_take(&context->kernel.wakes, row_take, &reported);
}

void live_wakeups_follow(struct live_wakeups *wakeups, int64_t tid)
{
	if (wakeups->followed.used >= FOLLOWED_MAX)
		index_empty(&wakeups->followed); /* threads of paths come again */
	index_put(&wakeups->followed, (uint64_t)tid, NULL);
}

uint64_t live_wakeups_needs(const struct live_wakeups *wakeups, const struct sample *sample,
			    uint64_t needs)
{
	bool awake = sample->now.state == STATE_ON || sample->now.state == STATE_RQ;

	if (!(needs & NEED_PATH) || awake ||
	    index_find(&wakeups->followed, (uint64_t)sample->thread.tid))
		return needs;
	return needs & ~(NEED_WAIT_CLASS | NEED_FILE | NEEDS_OF_WAIT | NEEDS_OF_APP);
}

void live_wakeups_done(struct live_wakeups *wakeups)
{
	index_clear(&wakeups->followed);
	kernel_symbols_done(&wakeups->symbols);
	index_clear(&wakeups->entries);
}
