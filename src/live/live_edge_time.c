/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live_edge_time.h"
#include "base/clock.h"

#define PERIOD_SHARE 2 /* one part in so many */

void live_edge_time_begin(struct live_edge_time *time, int64_t period_ns)
{
	time->left_ns = period_ns / PERIOD_SHARE;
	time->user_most_ns = time->left_ns / 4 * 3;
	index_empty(&time->users);
}

void live_edge_time_resume(struct live_edge_time *time)
{
	time->since_ns = clock_monotonic_ns();
}

bool live_edge_time_left(struct live_edge_time *time, uint32_t uid)
{
	const uint64_t *taken_ns = index_find(&time->users, uid);

	if (time->left_ns > 0 && (!taken_ns || (int64_t)*taken_ns < time->user_most_ns))
		return true;
	time->refused_count++;
	return false;
}

void live_edge_time_take(struct live_edge_time *time, uint32_t uid)
{
	int64_t now_ns = clock_monotonic_ns(), taken_ns = now_ns - time->since_ns;

	time->since_ns = now_ns;
	time->left_ns -= taken_ns;
	*index_put(&time->users, uid, NULL) += (uint64_t)taken_ns;
}

void live_edge_time_done(struct live_edge_time *time)
{
	index_clear(&time->users);
}
