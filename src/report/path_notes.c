/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/path_notes.h"
#include "base/clock.h"
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#define ROUNDED_NS 1000 /* state_us is whole microseconds */

struct path_wakeup {
	size_t previous;
	struct wakeup wakeup;
};

static size_t scan_put(struct path_notes *notes, const struct scan *scan)
{
	if (!notes->scan_count ||
	    notes->scans[notes->scan_count - 1].scan_time_ns != scan->scan_time_ns) {
		notes->scans = memory_grow(notes->scans, &notes->scan_capacity,
					   notes->scan_count + 1, sizeof(*notes->scans));
		notes->scans[notes->scan_count++] = (struct path_scan){
			.scan_time_ns = scan->scan_time_ns,
			.time_us = scan->time_us,
			.weight_us = scan->weight_us,
		};
	}
	return notes->scan_count - 1;
}

/* True if the thread is in the same sleep that an earlier scan saw. */
static bool is_same_sleep(const struct path_notes *notes, const struct path_episode *episode,
			  const struct sample *sample, size_t scan)
{
	int64_t since_ns;

	if (path_is_awake(sample) || episode->sample.now.state != sample->now.state)
		return false;
	if (sample->now.state_us == ABSENT) /* sleep from before the first scan */
		return true;
	since_ns = notes->scans[scan].scan_time_ns - sample->now.state_us * NS_PER_US;
	return since_ns <= notes->scans[episode->last].scan_time_ns + ROUNDED_NS;
}

/* True if the sample has facts of a sleep that the sample before lacks. */
static bool has_more(const struct sample *sample, const struct sample *before)
{
	return before->wait.open || before->stack.names_open ||
	       (sample->wait.why && !before->wait.why) || (sample->wait.on && !before->wait.on);
}

static size_t episode_put(struct path_notes *notes, const struct sample *sample, size_t scan)
{
	uint64_t *slot = index_put(&notes->last_episodes, (uint64_t)sample->thread.tid, NULL);
	struct path_episode *last = *slot ? &notes->episodes[*slot - 1] : NULL;

	if (last && last->last == scan)
		return *slot - 1; /* a scan has the thread twice */
	if (last && is_same_sleep(notes, last, sample, scan)) {
		if (has_more(sample, &last->sample)) {
			int64_t state_us = last->sample.now.state_us;

			last->sample = *sample;
			last->sample.now.state_us = state_us; /* as of the first scan */
		}
		last->last = scan;
		return *slot - 1;
	}
	notes->episodes = memory_grow(notes->episodes, &notes->episode_capacity,
				      notes->episode_count + 1, sizeof(*notes->episodes));
	notes->episodes[notes->episode_count] = (struct path_episode){
		.previous = *slot, .first = scan, .last = scan, .sample = *sample};
	*slot = ++notes->episode_count;
	return *slot - 1;
}

/* Key of a noted end: the thread, the process that it waits for, the call and its first
 * argument. */
static uint64_t end_key(const struct sample *sample, int64_t pid)
{
	return hash_u64(hash_u64((uint64_t)sample->thread.tid) ^ hash_u64((uint64_t)pid + 1) ^
			hash_u64((uint64_t)sample->call.nr + 2) ^
			hash_u64((uint64_t)sample->call.arg[0] + 3));
}

bool path_names_call(const struct sample *sample)
{
	return sample->call.nr != ABSENT && sample->call.arg[0] != ABSENT;
}

static void end_note(struct path_notes *notes, const struct sample *sample)
{
	if (sample->wait.pid == ABSENT || !path_names_call(sample))
		return;
	if (notes->ends.used >= PATH_ENDS_MAX)
		index_empty(&notes->ends); /* ends are noted again by later samples */
	index_put(&notes->ends, end_key(sample, sample->wait.pid), NULL);
}

void path_notes_add(struct path_notes *notes, const struct scan *scan, const struct sample *sample,
		    bool own)
{
	size_t count = notes->episode_count, slot;

	if (sample->now.state == STATE_ZOMBIE)
		return;
	end_note(notes, sample);
	slot = episode_put(notes, sample, scan_put(notes, scan));
	if (!own || notes->episode_count == count)
		return;
	notes->open = memory_grow(notes->open, &notes->open_capacity, notes->open_count + 1,
				  sizeof(*notes->open));
	notes->open[notes->open_count++] = slot;
	notes->episodes[slot].path = EPISODE_OPEN;
}

void path_notes_wakeup(struct path_notes *notes, const struct wakeup *wakeup)
{
	uint64_t *slot = index_put(&notes->last_wakeups, (uint64_t)wakeup->tid, NULL);

	notes->wakeups = memory_grow(notes->wakeups, &notes->wakeup_capacity,
				     notes->wakeup_count + 1, sizeof(*notes->wakeups));
	notes->wakeups[notes->wakeup_count] =
		(struct path_wakeup){.previous = *slot, .wakeup = *wakeup};
	*slot = ++notes->wakeup_count;
}

const struct path_episode *path_episode_find(const struct path_notes *notes, int64_t tid,
					     size_t scan)
{
	const uint64_t *last = index_find(&notes->last_episodes, (uint64_t)tid);

	for (size_t at = last ? *last : 0; at; at = notes->episodes[at - 1].previous) {
		const struct path_episode *episode = &notes->episodes[at - 1];

		if (episode->last < scan)
			return NULL;
		if (episode->first <= scan)
			return episode;
	}
	return NULL;
}

/* The end of the sleep that the thread was in at that scan; NULL: not reported. */
const struct wakeup *path_wakeup_find(const struct path_notes *notes, int64_t tid, size_t scan)
{
	const uint64_t *last = index_find(&notes->last_wakeups, (uint64_t)tid);
	int64_t scan_time_ns = notes->scans[scan].scan_time_ns;

	for (size_t at = last ? *last : 0; at; at = notes->wakeups[at - 1].previous) {
		const struct wakeup *wakeup = &notes->wakeups[at - 1].wakeup;

		if (wakeup->slept_ns < scan_time_ns && wakeup->wake_ns >= scan_time_ns)
			return wakeup;
	}
	return NULL;
}

/* On a busy host many waits are over before their other end is looked up; then the other ends of
 * earlier waits of the thread in the same call count. */
bool path_waits_for(const struct path_notes *notes, const struct path_episode *sleeper,
		    const struct path_episode *waker)
{
	const struct sample *sample = &sleeper->sample;

	if (!waker)
		return false;
	if (sample->wait.pid != ABSENT)
		return sample->wait.pid == waker->sample.thread.pid;
	return path_names_call(sample) &&
	       index_find(&notes->ends, end_key(sample, waker->sample.thread.pid));
}

bool path_notes_full(const struct path_notes *notes)
{
	return notes->scan_count >= PATH_SCANS_MAX || notes->episode_count >= PATH_EPISODES_MAX;
}

/* Forgets episodes that ended before the scan `from`, and the part before it of other episodes. */
static void episodes_forget(struct path_notes *notes, size_t from)
{
	size_t count = notes->episode_count;

	index_empty(&notes->last_episodes);
	notes->episode_count = notes->open_count = 0;
	for (size_t i = 0; i < count; i++) {
		struct path_episode episode = notes->episodes[i];
		uint64_t *slot;

		if (episode.last < from)
			continue;
		if (episode.first < from) {
			if (episode.sample.now.state_us != ABSENT) /* as of the first scan */
				episode.sample.now.state_us +=
					(notes->scans[from].scan_time_ns -
					 notes->scans[episode.first].scan_time_ns) /
					NS_PER_US;
			episode.first = from;
		}
		episode.first -= from;
		episode.last -= from;
		slot = index_put(&notes->last_episodes, (uint64_t)episode.sample.thread.tid, NULL);
		episode.previous = *slot;
		if (episode.path == EPISODE_OPEN)
			notes->open[notes->open_count++] = notes->episode_count;
		notes->episodes[notes->episode_count] = episode;
		*slot = ++notes->episode_count;
	}
}

/* Forgets wake-ups before since_ns; later ones are of scans that stay, or are still to come. */
static void wakeups_forget(struct path_notes *notes, int64_t since_ns)
{
	size_t count = notes->wakeup_count;

	index_empty(&notes->last_wakeups);
	notes->wakeup_count = 0;
	for (size_t i = 0; i < count; i++) {
		struct wakeup wakeup = notes->wakeups[i].wakeup;

		if (wakeup.wake_ns >= since_ns)
			path_notes_wakeup(notes, &wakeup);
	}
}

void path_notes_forget(struct path_notes *notes, size_t from)
{
	bool all = from == notes->scan_count;

	episodes_forget(notes, from);
	wakeups_forget(notes, all ? notes->scans[from - 1].scan_time_ns + 1
				  : notes->scans[from].scan_time_ns);
	notes->scan_count -= from;
	memmove(notes->scans, notes->scans + from, notes->scan_count * sizeof(*notes->scans));
}

void path_notes_done(struct path_notes *notes)
{
	index_clear(&notes->last_episodes);
	index_clear(&notes->last_wakeups);
	index_clear(&notes->ends);
	free(notes->scans);
	free(notes->episodes);
	free(notes->wakeups);
	free(notes->open);
	*notes = (struct path_notes){0};
}
