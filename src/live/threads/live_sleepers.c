/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/threads/live_sleepers.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#define TURNS_MAX 65536 /* limit of turn; a later walk meets the rest again */
#define KEYS_LEAST 4096

static void judged_fit(struct live_sleepers *sleepers, uint64_t key)
{
	size_t count = sleepers->judged_count ? sleepers->judged_count : KEYS_LEAST;

	if (key < sleepers->judged_count)
		return;
	while (count <= key)
		count *= 2;
	sleepers->judged = memory_resize(sleepers->judged, count, sizeof(*sleepers->judged));
	memset(sleepers->judged + sleepers->judged_count, 0,
	       (count - sleepers->judged_count) * sizeof(*sleepers->judged));
	sleepers->judged_count = count;
}

bool live_sleepers_judged(const struct live_sleepers *sleepers, uint64_t key, uint64_t sequence)
{
	const uint64_t *far = key > UINT32_MAX ? index_find(&sleepers->judged_far, key) : NULL;

	if (key > UINT32_MAX)
		return far && *far == (uint32_t)sequence + 1;
	return key < sleepers->judged_count && sleepers->judged[key] == (uint32_t)sequence + 1;
}

bool live_sleepers_judge(struct live_sleepers *sleepers, uint64_t key, uint64_t sequence)
{
	bool judged = live_sleepers_judged(sleepers, key, sequence);
	uint32_t episode = (uint32_t)sequence + 1;

	if (key > UINT32_MAX) {
		*index_put(&sleepers->judged_far, key, NULL) = episode;
		return judged;
	}
	judged_fit(sleepers, key);
	sleepers->judged[key] = episode;
	return judged;
}

void live_sleepers_queue(struct live_sleepers *sleepers, uint64_t key, uint64_t sequence)
{
	if (sleepers->turn_count == TURNS_MAX || live_sleepers_judge(sleepers, key, sequence))
		return;
	if (!sleepers->turn)
		sleepers->turn = memory_get(TURNS_MAX * sizeof(*sleepers->turn));
	sleepers->turn[(sleepers->turn_first + sleepers->turn_count++) % TURNS_MAX] = key;
}

bool live_sleepers_next(struct live_sleepers *sleepers, uint64_t *key)
{
	if (!sleepers->turn_count)
		return false;
	*key = sleepers->turn[sleepers->turn_first];
	sleepers->turn_first = (sleepers->turn_first + 1) % TURNS_MAX;
	sleepers->turn_count--;
	return true;
}

void live_sleepers_again(struct live_sleepers *sleepers, uint64_t key)
{
	index_put(&sleepers->again_next, key, NULL);
}

void live_sleepers_turn_over(struct live_sleepers *sleepers)
{
	index_clear(&sleepers->again);
	sleepers->again = sleepers->again_next;
	sleepers->again_next = (struct index){0};
}

void live_sleepers_clear(struct live_sleepers *sleepers)
{
	index_clear(&sleepers->again);
	index_clear(&sleepers->again_next);
	index_clear(&sleepers->judged_far);
	free(sleepers->judged);
	free(sleepers->turn);
	*sleepers = (struct live_sleepers){0};
}
