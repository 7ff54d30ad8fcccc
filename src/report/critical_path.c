/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/critical_path.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/names.h"
#include "base/text.h"
#include "sample/wait_rule.h"

#include <stdlib.h>
#include <string.h>

static bool path_is_awake(const struct sample *sample)
{
	return sample->now.state == STATE_ON || sample->now.state == STATE_RQ;
}

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

/* True if the sample's call is known with its first argument. */
static bool path_names_call(const struct sample *sample)
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

/* Returns what the thread did in that scan; NULL: it has no sample there. */
static const struct path_episode *path_episode_find(const struct path_notes *notes, int64_t tid,
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
static const struct wakeup *path_wakeup_find(const struct path_notes *notes, int64_t tid,
					     size_t scan)
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
static bool path_waits_for(const struct path_notes *notes, const struct path_episode *sleeper,
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

static bool path_notes_full(const struct path_notes *notes)
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

/* Forgets the scans before `from`, and the episodes and wake-ups that are only in these. */
static void path_notes_forget(struct path_notes *notes, size_t from)
{
	bool all = from == notes->scan_count;

	episodes_forget(notes, from);
	wakeups_forget(notes, all ? notes->scans[from - 1].scan_time_ns + 1
				  : notes->scans[from].scan_time_ns);
	notes->scan_count -= from;
	memmove(notes->scans, notes->scans + from, notes->scan_count * sizeof(*notes->scans));
}

static void path_notes_done(struct path_notes *notes)
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

#define GRACE_SCANS 2	/* scans after a sleep until its end is reported, or lost */
#define PATH_TOLD_MAX 8 /* limit of threads that a text names: the first and last ones */

/* A walk from a thread of the process to the end of its path. */
struct path_walk {
	const struct path_episode *links[PATH_LINKS_MAX];
	size_t count;
	const char *end;
	bool ambiguous; /* perhaps the interrupted thread sent a packet; path_waits_for() knows
			   later */
};

static const char END_CPU[] = "CPU", END_QUEUE[] = "run queue", END_DISK[] = "disk",
		  END_TIMER[] = "timer", END_NETWORK[] = "network", END_INTERRUPT[] = "interrupt",
		  END_SELF[] = "self", END_OPEN[] = "not ended", END_UNSEEN[] = "not seen";

/* Meaning of an interrupt that ended a wait, by what the thread waited for. */
static const char *interrupt_end(const struct sample *sample)
{
	const struct wait_rule *rule = wait_rule_find(sample->wait.why);

	if (!rule && sample->call.name)
		rule = wait_rule_of_call(sample->call.name);
	if (sample->now.state == STATE_DISK || (rule && rule->traits & INTERRUPT_DISK))
		return END_DISK;
	if (rule && rule->traits & INTERRUPT_TIMER)
		return END_TIMER;
	return rule && rule->traits & INTERRUPT_NETWORK ? END_NETWORK : END_INTERRUPT;
}

/* The next thread of the path; NULL: walk->end says why there is none. A packet of a process of
 * this host is delivered in an interrupt of the CPU on which it was sent: if the wait is for the
 * interrupted thread, that thread is the sender. */
static const struct path_episode *walk_next(const struct critical_path *path,
					    struct path_walk *walk, size_t scan, int64_t *before_ns)
{
	const struct path_episode *sleeper = walk->links[walk->count - 1], *waker;
	const struct wakeup *wakeup =
		path_wakeup_find(&path->notes, sleeper->sample.thread.tid, scan);

	if (!wakeup) {
		walk->end = walk->count == 1 && sleeper->last + 1 >= path->notes.scan_count
				    ? END_OPEN
				    : END_UNSEEN;
		return NULL;
	}
	waker = wakeup->waker_tid == ABSENT
			? NULL
			: path_episode_find(&path->notes, wakeup->waker_tid, scan);
	if (wakeup->interrupt && !path_waits_for(&path->notes, sleeper, waker)) {
		walk->end = interrupt_end(&sleeper->sample);
		walk->ambiguous = (walk->end == END_NETWORK || walk->end == END_INTERRUPT) &&
				  waker && sleeper->sample.wait.pid == ABSENT &&
				  path_names_call(&sleeper->sample);
	} else if (wakeup->waker_tid == sleeper->sample.thread.tid)
		walk->end = END_SELF;
	else if (!waker || wakeup->wake_ns > *before_ns || walk->count == PATH_LINKS_MAX)
		walk->end = END_UNSEEN;
	else {
		*before_ns = wakeup->wake_ns;
		return waker;
	}
	return NULL;
}

static void walk_make(const struct critical_path *path, const struct path_episode *from,
		      size_t scan, struct path_walk *walk)
{
	int64_t before_ns = INT64_MAX;
	const struct path_episode *link = from;

	*walk = (struct path_walk){.count = 0};
	while (link) {
		walk->links[walk->count++] = link;
		if (path_is_awake(&link->sample)) {
			walk->end = link->sample.now.state == STATE_ON ? END_CPU : END_QUEUE;
			return;
		}
		link = walk_next(path, walk, scan, &before_ns);
	}
}

/* Text of a walk: "client read> server futex> worker" */
static const char *walk_text(const struct path_walk *walk)
{
	static struct text text;
	size_t left_out = walk->count > PATH_TOLD_MAX ? walk->count - PATH_TOLD_MAX : 0;

	text_clear(&text);
	for (size_t i = 0; i < walk->count; i++) {
		const struct sample *sample = &walk->links[i]->sample;
		const struct state_row *state = state_row(sample->now.state);

		if (left_out && i == PATH_TOLD_MAX / 2) {
			text_add_string(&text, "... ");
			i += left_out;
			sample = &walk->links[i]->sample;
			state = state_row(sample->now.state);
		}
		text_add_string(&text, sample->thread.comm ? sample->thread.comm : "?");
		if (i + 1 < walk->count)
			text_add_format(&text, " %s> ",
					sample->call.name ? sample->call.name : state->name);
	}
	return name_transient(text_string(&text), text.length);
}

/* Text of a walk's end: "disk vda" */
static const char *end_text(const struct path_walk *walk, const struct sample *sample)
{
	static struct text text;

	if (walk->end != END_DISK || !sample->io.dev)
		return walk->end;
	text_clear(&text);
	text_add_format(&text, "%s %s", walk->end, sample->io.dev);
	return name_transient(text_string(&text), text.length);
}

/* Adds the path's threads if all of them slept: what they waited for matters. */
static void led_to_add(struct critical_path *path, const struct path_walk *walk)
{
	path->led_to = memory_grow(path->led_to, &path->led_to_capacity,
				   path->led_to_count + walk->count, sizeof(*path->led_to));
	for (size_t i = 0; i < walk->count; i++)
		path->led_to[path->led_to_count++] = walk->links[i]->sample.thread.tid;
}

/* Makes the sample of a path: the activity of its last thread, and whose path it is. */
static void path_report(struct critical_path *path, const struct path_walk *walk, size_t scan,
			path_callback *take, void *to)
{
	const struct path_episode *end = walk->links[walk->count - 1];
	const struct path_scan *at = &path->notes.scans[scan];
	struct sample reported = end->sample;

	reported.scan.time_us = at->time_us;
	reported.scan.weight_us = at->weight_us;
	if (reported.now.state_us != ABSENT)
		reported.now.state_us -=
			(path->notes.scans[end->first].scan_time_ns - at->scan_time_ns) / NS_PER_US;
	reported.path.end = end_text(walk, &reported);
	reported.path.text = walk_text(walk);
	reported.path.of = walk->links[0]->sample.thread.comm;
	reported.path.of_tid = walk->links[0]->sample.thread.tid;
	reported.path.depth = (int64_t)walk->count - 1;
	reported.sums = sample_absent()->sums;
	reported.wait.open = reported.stack.names_open = false;
	reported.proc_values = NULL;
	if (!path_is_awake(&reported))
		led_to_add(path, walk);
	if (!path->ordered) {
		take(to, &reported);
		return;
	}
	path->held = memory_grow(path->held, &path->held_capacity, path->held_count + 1,
				 sizeof(*path->held));
	path->held[path->held_count++] = reported;
}

/* Reports the paths of an episode in the scans before `end`. */
static void episode_report(struct critical_path *path, const struct path_episode *episode,
			   size_t end, path_callback *take, void *to)
{
	struct path_walk walk;

	for (size_t scan = episode->first; scan <= episode->last && scan < end; scan++) {
		walk_make(path, episode, scan, &walk);
		path_report(path, &walk, scan, take, to);
	}
}

/* True if everything that the paths of an episode lead through has been reported. */
static bool episode_known(const struct critical_path *path, const struct path_episode *episode,
			  int64_t until_ns)
{
	const struct wakeup *wakeup;

	if (path_is_awake(&episode->sample))
		return true;
	wakeup = path_wakeup_find(&path->notes, episode->sample.thread.tid, episode->last);
	return wakeup ? wakeup->wake_ns <= until_ns
		      : episode->last + 1 + GRACE_SCANS < path->notes.scan_count;
}

static bool episode_is_ambiguous(const struct critical_path *path,
				 const struct path_episode *episode)
{
	struct path_walk walk;

	walk_make(path, episode, episode->last, &walk);
	return walk.ambiguous;
}

static int times_compare(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	return (x->scan.time_us > y->scan.time_us) - (x->scan.time_us < y->scan.time_us);
}

/* Hands over the held samples of times before end_us. */
static void held_report(struct critical_path *path, int64_t end_us, path_callback *take, void *to)
{
	size_t reported = 0;

	if (!path->held_count)
		return;
	qsort(path->held, path->held_count, sizeof(*path->held), times_compare);
	while (reported < path->held_count && path->held[reported].scan.time_us < end_us)
		take(to, &path->held[reported++]);
	path->held_count -= reported;
	memmove(path->held, path->held + reported, path->held_count * sizeof(*path->held));
}

/* Reports all scans before `from` and forgets them: a wait that goes on has not ended in these. */
static void path_forget(struct critical_path *path, size_t from, path_callback *take, void *to)
{
	bool all = from == path->notes.scan_count;

	if (!path->notes.scan_count)
		return;
	for (size_t i = 0; i < path->notes.episode_count; i++)
		if (path->notes.episodes[i].path != EPISODE_NONE)
			episode_report(path, &path->notes.episodes[i], from, take, to);
	held_report(path, all ? INT64_MAX : path->notes.scans[from].time_us, take, to);
	path_notes_forget(&path->notes, from);
}

void critical_path_end_scan(struct critical_path *path, int64_t until_ns, path_callback *take,
			    void *to)
{
	size_t left = 0;

	for (size_t i = 0; i < path->notes.open_count; i++) {
		size_t slot = path->notes.open[i];
		struct path_episode *episode = &path->notes.episodes[slot];

		if (!episode_known(path, episode, until_ns)) {
			path->notes.open[left++] = slot;
			continue;
		}
		episode->path =
			episode_is_ambiguous(path, episode) ? EPISODE_AMBIGUOUS : EPISODE_NONE;
		if (episode->path == EPISODE_NONE)
			episode_report(path, episode, SIZE_MAX, take, to);
	}
	path->notes.open_count = left;
	if (path_notes_full(&path->notes))
		path_forget(path, (path->notes.scan_count + 3) / 4, take, to);
	if (path_notes_full(&path->notes))
		critical_path_settle(path, take, to);
}

void critical_path_settle(struct critical_path *path, path_callback *take, void *to)
{
	path_forget(path, path->notes.scan_count, take, to);
}

void critical_path_done(struct critical_path *path)
{
	path_notes_done(&path->notes);
	free(path->held);
	free(path->led_to);
	*path = (struct critical_path){0};
}
