/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/critical_path.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/names.h"
#include "base/text.h"
#include "sample/wait_rule.h"

#include <stdlib.h>
#include <string.h>

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
	static const struct {
		const char *why, *end;
	} rows[] = {
		{"sleep", END_TIMER},	 {"futex", END_TIMER},	  {"lock", END_TIMER},
		{"request", END_TIMER},	 {"signal", END_TIMER},	  {"client", END_NETWORK},
		{"server", END_NETWORK}, {"socket", END_NETWORK}, {"io", END_DISK},
	};

	const char *why = sample->wait.why; /* NULL: found by the call alone */

	if (sample->now.state == STATE_DISK)
		return END_DISK;
	if (!why && sample->call.name) {
		const struct wait_rule *rule = wait_rule_of_call(sample->call.name);

		why = rule ? rule->name : NULL;
	}
	for (size_t i = 0; why && i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strcmp(why, rows[i].why))
			return rows[i].end;
	return END_INTERRUPT;
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
	path->unseen_count += walk->end == END_UNSEEN;
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
