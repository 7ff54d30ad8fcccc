/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/chains/live_edge_time.h"
#include "base/clock.h"
#include "live/context/live_context.h"
#include "proc/proc.h"
#include "sample/sample.h"

#define USER_LEAST_NS (20 * NS_PER_MS) /* least at high rates: a host may be slow for a moment */
#define OWNERS_STILL_NS NS_PER_SECOND

void live_edge_time_begin(struct live_edge_time *time, int64_t now_ns, int64_t period_ns)
{
	int64_t most_ns = period_ns / 8 * 3;

	time->user_most_ns = most_ns > USER_LEAST_NS ? most_ns : USER_LEAST_NS;
	time->left_ns = 2 * time->user_most_ns;
	time->cpu_ns = clock_thread_cpu_ns();
	index_empty(&time->users);
	if (now_ns - time->owners_ns < OWNERS_STILL_NS)
		return;
	index_empty(&time->owners);
	time->owners_ns = now_ns;
}

int64_t live_edge_time_user(struct live_edge_time *time, int64_t pid)
{
	bool added;
	uint64_t *owner = index_put(&time->owners, (uint64_t)pid, &added);
	int64_t uid;

	if (added)
		*owner = (uint64_t)(proc_owner_read(PROC, pid, pid, &uid) ? ABSENT : uid);
	return (int64_t)*owner;
}

void live_edge_time_resume(struct live_edge_time *time)
{
	time->since_ns = clock_monotonic_ns();
}

bool live_edge_time_left(struct live_edge_time *time, int64_t uid)
{
	const uint64_t *taken_ns = index_find(&time->users, (uint64_t)uid);

	if (time->left_ns > 0 && (!taken_ns || (int64_t)*taken_ns < time->user_most_ns))
		return true;
	/* another thread had the CPU: checked only now, as it takes a system call */
	if (clock_thread_cpu_ns() - time->cpu_ns < time->user_most_ns)
		return true;
	time->refused_count++;
	return false;
}

void live_edge_time_take(struct live_edge_time *time, int64_t uid)
{
	int64_t now_ns = clock_monotonic_ns(), taken_ns = now_ns - time->since_ns;

	time->since_ns = now_ns;
	time->left_ns -= taken_ns;
	*index_put(&time->users, (uint64_t)uid, NULL) += (uint64_t)taken_ns;
}

void live_edge_time_done(struct live_edge_time *time)
{
	index_clear(&time->users);
	index_clear(&time->owners);
}
