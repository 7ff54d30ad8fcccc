/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "report/critical_path.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/names.h"
#include "base/text.h"
#include "sample/why.h"

#include <stdlib.h>
#include <string.h>

#define GRACE_SCANS 2	/* after the last one of a sleep its end is told, or was lost */
#define ROUNDED_NS 1000 /* state_us is whole microseconds */
#define PATH_TOLD_MAX 8 /* threads that the text names; of a longer path the first and last */

struct path_scan {
	int64_t moment_ns, time_us, weight_us;
};

/* Path of an episode of the process. */
enum episode_path {
	EPISODE_NONE,	 /* there is nothing to tell, or no more */
	EPISODE_OPEN,	 /* not known yet */
	EPISODE_DOUBTED, /* more may be found out about it: it is told when it is forgotten */
};

struct path_episode {
	enum episode_path path;
	size_t previous;    /* the thread's episode before, as index plus one; 0: none */
	size_t first, last; /* scans */
	struct sample sample;
};

struct path_wakeup {
	size_t previous;
	struct wakeup wakeup;
};

/* A walk from a thread of the process to the end. */
struct path_walk {
	const struct path_episode *links[PATH_LINKS_MAX];
	size_t count;
	const char *end;
	bool doubted; /* perhaps a packet that the interrupted thread sent: sent_by() will know */
};

static const char END_CPU[] = "CPU", END_QUEUE[] = "run queue", END_DISK[] = "disk",
		  END_TIMER[] = "timer", END_NETWORK[] = "network", END_INTERRUPT[] = "interrupt",
		  END_SELF[] = "self", END_OPEN[] = "not ended", END_UNSEEN[] = "not seen";

static bool is_awake(const struct sample *sample)
{
	return sample->state == DOING_ON || sample->state == DOING_RQ;
}

static size_t scan_put(struct critical_path *path, const struct scan *scan)
{
	if (!path->scan_count || path->scans[path->scan_count - 1].moment_ns != scan->moment_ns) {
		path->scans = memory_grow(path->scans, &path->scan_capacity, path->scan_count + 1,
					  sizeof(*path->scans));
		path->scans[path->scan_count++] = (struct path_scan){
			.moment_ns = scan->moment_ns,
			.time_us = scan->time_us,
			.weight_us = scan->weight_us,
		};
	}
	return path->scan_count - 1;
}

/* The sleep that the thread is in is the one that an earlier scan saw. */
static bool is_same_sleep(const struct critical_path *path, const struct path_episode *episode,
			  const struct sample *sample, size_t scan)
{
	int64_t since_ns;

	if (is_awake(sample) || episode->sample.state != sample->state)
		return false;
	if (sample->state_us == ABSENT) /* from before the first scan */
		return true;
	since_ns = path->scans[scan].moment_ns - sample->state_us * NS_PER_US;
	return since_ns <= path->scans[episode->last].moment_ns + ROUNDED_NS;
}

/* The sample of a sleep has what was not found out for the one before. */
static bool tells_more(const struct sample *sample, const struct sample *before)
{
	return before->wait_open || before->names_open || (sample->why && !before->why) ||
	       (sample->waits_on && !before->waits_on);
}

static size_t episode_put(struct critical_path *path, const struct sample *sample, size_t scan)
{
	uint64_t *place = index_put(&path->last_episodes, (uint64_t)sample->tid, NULL);
	struct path_episode *last = *place ? &path->episodes[*place - 1] : NULL;

	if (last && last->last == scan)
		return *place - 1; /* a scan that has it twice */
	if (last && is_same_sleep(path, last, sample, scan)) {
		if (tells_more(sample, &last->sample)) {
			int64_t state_us = last->sample.state_us;

			last->sample = *sample;
			last->sample.state_us = state_us; /* it is as of the first scan */
		}
		last->last = scan;
		return *place - 1;
	}
	path->episodes = memory_grow(path->episodes, &path->episode_capacity,
				     path->episode_count + 1, sizeof(*path->episodes));
	path->episodes[path->episode_count] = (struct path_episode){
		.previous = *place, .first = scan, .last = scan, .sample = *sample};
	*place = ++path->episode_count;
	return *place - 1;
}

/* Key of the ends that were noted: the thread, the process that it waits for, its call and the
 * first argument of that. */
static uint64_t end_key(const struct sample *sample, int64_t pid)
{
	return hash_u64(hash_u64((uint64_t)sample->tid) ^ hash_u64((uint64_t)pid + 1) ^
			hash_u64((uint64_t)sample->syscall_nr + 2) ^
			hash_u64((uint64_t)sample->arg[0] + 3));
}

static bool names_call(const struct sample *sample)
{
	return sample->syscall_nr != ABSENT && sample->arg[0] != ABSENT;
}

static void end_note(struct critical_path *path, const struct sample *sample)
{
	if (sample->waits_on_pid == ABSENT || !names_call(sample))
		return;
	if (path->ends.used >= PATH_ENDS_MAX)
		index_empty(&path->ends); /* they come again */
	index_put(&path->ends, end_key(sample, sample->waits_on_pid), NULL);
}

void critical_path_add(struct critical_path *path, const struct scan *scan,
		       const struct sample *sample, bool own)
{
	size_t count = path->episode_count, place;

	if (sample->state == DOING_ZOMBIE)
		return;
	end_note(path, sample);
	place = episode_put(path, sample, scan_put(path, scan));
	if (!own || path->episode_count == count)
		return;
	path->open = memory_grow(path->open, &path->open_capacity, path->open_count + 1,
				 sizeof(*path->open));
	path->open[path->open_count++] = place;
	path->episodes[place].path = EPISODE_OPEN;
}

void critical_path_wakeup(struct critical_path *path, const struct wakeup *wakeup)
{
	uint64_t *place = index_put(&path->last_wakeups, (uint64_t)wakeup->tid, NULL);

	path->wakeups = memory_grow(path->wakeups, &path->wakeup_capacity, path->wakeup_count + 1,
				    sizeof(*path->wakeups));
	path->wakeups[path->wakeup_count] =
		(struct path_wakeup){.previous = *place, .wakeup = *wakeup};
	*place = ++path->wakeup_count;
}

static const struct path_episode *episode_find(const struct critical_path *path, int64_t tid,
					       size_t scan)
{
	const uint64_t *last = index_find(&path->last_episodes, (uint64_t)tid);

	for (size_t at = last ? *last : 0; at; at = path->episodes[at - 1].previous) {
		const struct path_episode *episode = &path->episodes[at - 1];

		if (episode->last < scan)
			return NULL;
		if (episode->first <= scan)
			return episode;
	}
	return NULL;
}

/* The end of the sleep that the thread was in at that time; NULL: not told. */
static const struct wakeup *wakeup_find(const struct critical_path *path, int64_t tid, size_t scan)
{
	const uint64_t *last = index_find(&path->last_wakeups, (uint64_t)tid);
	int64_t moment_ns = path->scans[scan].moment_ns;

	for (size_t at = last ? *last : 0; at; at = path->wakeups[at - 1].previous) {
		const struct wakeup *wakeup = &path->wakeups[at - 1].wakeup;

		if (wakeup->slept_ns < moment_ns && wakeup->wake_ns >= moment_ns)
			return wakeup;
	}
	return NULL;
}

/* A packet of a process of this host is delivered in an interrupt of the CPU on which it was sent:
 * the interrupted thread is the sender. On a busy host many waits are over before their other end
 * is looked up: then what earlier waits of the thread in the same call were for counts. */
static bool sent_by(const struct critical_path *path, const struct path_episode *sleeper,
		    const struct path_episode *waker)
{
	const struct sample *sample = &sleeper->sample;

	if (!waker)
		return false;
	if (sample->waits_on_pid != ABSENT)
		return sample->waits_on_pid == waker->sample.pid;
	return names_call(sample) && index_find(&path->ends, end_key(sample, waker->sample.pid));
}

/* Meaning of an interrupt that ended a wait, by what was waited for. */
static const char *interrupt_end(const struct sample *sample)
{
	static const struct {
		const char *why, *end;
	} rows[] = {
		{"sleep", END_TIMER},	 {"futex", END_TIMER},	  {"lock", END_TIMER},
		{"request", END_TIMER},	 {"signal", END_TIMER},	  {"client", END_NETWORK},
		{"server", END_NETWORK}, {"socket", END_NETWORK}, {"io", END_DISK},
	};

	const char *why = sample->why; /* or by the call alone */

	if (sample->state == DOING_DISK)
		return END_DISK;
	if (!why && sample->syscall) {
		const struct why_rule *rule = why_of_call(sample->syscall);

		why = rule ? rule->name : NULL;
	}
	for (size_t i = 0; why && i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strcmp(why, rows[i].why))
			return rows[i].end;
	return END_INTERRUPT;
}

/* The next thread of the path; NULL: walk->end tells why there is none. */
static const struct path_episode *walk_next(const struct critical_path *path,
					    struct path_walk *walk, size_t scan, int64_t *before_ns)
{
	const struct path_episode *sleeper = walk->links[walk->count - 1], *waker;
	const struct wakeup *wakeup = wakeup_find(path, sleeper->sample.tid, scan);

	if (!wakeup) {
		walk->end = walk->count == 1 && sleeper->last + 1 >= path->scan_count ? END_OPEN
										      : END_UNSEEN;
		return NULL;
	}
	waker = wakeup->waker_tid == ABSENT ? NULL : episode_find(path, wakeup->waker_tid, scan);
	if (wakeup->interrupt && !sent_by(path, sleeper, waker)) {
		walk->end = interrupt_end(&sleeper->sample);
		walk->doubted = (walk->end == END_NETWORK || walk->end == END_INTERRUPT) && waker &&
				sleeper->sample.waits_on_pid == ABSENT &&
				names_call(&sleeper->sample);
	} else if (wakeup->waker_tid == sleeper->sample.tid)
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
		if (is_awake(&link->sample)) {
			walk->end = link->sample.state == DOING_ON ? END_CPU : END_QUEUE;
			return;
		}
		link = walk_next(path, walk, scan, &before_ns);
	}
}

/* "client read> server futex> worker" */
static const char *walk_text(const struct path_walk *walk)
{
	static struct text text;
	size_t left_out = walk->count > PATH_TOLD_MAX ? walk->count - PATH_TOLD_MAX : 0;

	text_clear(&text);
	for (size_t i = 0; i < walk->count; i++) {
		const struct sample *sample = &walk->links[i]->sample;
		const struct state_row *state = state_row(sample->state);

		if (left_out && i == PATH_TOLD_MAX / 2) {
			text_add_string(&text, "... ");
			i += left_out;
			sample = &walk->links[i]->sample;
			state = state_row(sample->state);
		}
		text_add_string(&text, sample->comm ? sample->comm : "?");
		if (i + 1 < walk->count)
			text_add_format(&text, " %s> ",
					sample->syscall ? sample->syscall : state->name);
	}
	return name_lent(text_string(&text), text.length);
}

/* "disk vda" */
static const char *end_text(const struct path_walk *walk, const struct sample *sample)
{
	static struct text text;

	if (walk->end != END_DISK || !sample->io_dev)
		return walk->end;
	text_clear(&text);
	text_add_format(&text, "%s %s", walk->end, sample->io_dev);
	return name_lent(text_string(&text), text.length);
}

/* All threads of the path slept: what they waited for matters. */
static void led_to_add(struct critical_path *path, const struct path_walk *walk)
{
	path->led_to = memory_grow(path->led_to, &path->led_to_capacity,
				   path->led_to_count + walk->count, sizeof(*path->led_to));
	for (size_t i = 0; i < walk->count; i++)
		path->led_to[path->led_to_count++] = walk->links[i]->sample.tid;
}

/* The sample of a path: what its last thread did, and whose path it is. */
static void path_tell(struct critical_path *path, const struct path_walk *walk, size_t scan,
		      path_taker *take, void *to)
{
	const struct path_episode *end = walk->links[walk->count - 1];
	const struct path_scan *at = &path->scans[scan];
	struct sample told = end->sample;

	told.time_us = at->time_us;
	told.weight_us = at->weight_us;
	if (told.state_us != ABSENT)
		told.state_us -= (path->scans[end->first].moment_ns - at->moment_ns) / NS_PER_US;
	told.path_end = end_text(walk, &told);
	told.path = walk_text(walk);
	told.path_of = walk->links[0]->sample.comm;
	told.path_of_tid = walk->links[0]->sample.tid;
	told.path_depth = (int64_t)walk->count - 1;
	told.cpu_us = told.runq_us = told.dwait_us = told.sleep_us = ABSENT;
	told.vcsw = told.ivcsw = ABSENT;
	told.wait_open = told.names_open = false;
	told.proc_values = NULL;
	path->unseen_count += walk->end == END_UNSEEN;
	if (!is_awake(&told))
		led_to_add(path, walk);
	if (!path->ordered) {
		take(to, &told);
		return;
	}
	path->held = memory_grow(path->held, &path->held_capacity, path->held_count + 1,
				 sizeof(*path->held));
	path->held[path->held_count++] = told;
}

/* Tells the paths of an episode in the scans before `end`. */
static void episode_tell(struct critical_path *path, const struct path_episode *episode, size_t end,
			 path_taker *take, void *to)
{
	struct path_walk walk;

	for (size_t scan = episode->first; scan <= episode->last && scan < end; scan++) {
		walk_make(path, episode, scan, &walk);
		path_tell(path, &walk, scan, take, to);
	}
}

/* True if all that the paths of an episode lead through has been told. */
static bool episode_known(const struct critical_path *path, const struct path_episode *episode,
			  int64_t until_ns)
{
	const struct wakeup *wakeup;

	if (is_awake(&episode->sample))
		return true;
	wakeup = wakeup_find(path, episode->sample.tid, episode->last);
	return wakeup ? wakeup->wake_ns <= until_ns
		      : episode->last + 1 + GRACE_SCANS < path->scan_count;
}

static bool episode_doubted(const struct critical_path *path, const struct path_episode *episode)
{
	struct path_walk walk;

	walk_make(path, episode, episode->last, &walk);
	return walk.doubted;
}

static int times_compare(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	return (x->time_us > y->time_us) - (x->time_us < y->time_us);
}

/* Hands over what is held of times before end_us. */
static void held_tell(struct critical_path *path, int64_t end_us, path_taker *take, void *to)
{
	size_t told = 0;

	if (!path->held_count)
		return;
	qsort(path->held, path->held_count, sizeof(*path->held), times_compare);
	while (told < path->held_count && path->held[told].time_us < end_us)
		take(to, &path->held[told++]);
	path->held_count -= told;
	memmove(path->held, path->held + told, path->held_count * sizeof(*path->held));
}

/* Forgets episodes that ended before the scan `from`, and of others the part before it. */
static void episodes_forget(struct critical_path *path, size_t from)
{
	size_t count = path->episode_count;

	index_empty(&path->last_episodes);
	path->episode_count = path->open_count = 0;
	for (size_t i = 0; i < count; i++) {
		struct path_episode episode = path->episodes[i];
		uint64_t *place;

		if (episode.last < from)
			continue;
		if (episode.first < from) {
			if (episode.sample.state_us != ABSENT) /* it is as of the first scan */
				episode.sample.state_us += (path->scans[from].moment_ns -
							    path->scans[episode.first].moment_ns) /
							   NS_PER_US;
			episode.first = from;
		}
		episode.first -= from;
		episode.last -= from;
		place = index_put(&path->last_episodes, (uint64_t)episode.sample.tid, NULL);
		episode.previous = *place;
		if (episode.path == EPISODE_OPEN)
			path->open[path->open_count++] = path->episode_count;
		path->episodes[path->episode_count] = episode;
		*place = ++path->episode_count;
	}
}

/* Forgets wake-ups before since_ns; later ones are of scans that stay, or are still to come. */
static void wakeups_forget(struct critical_path *path, int64_t since_ns)
{
	size_t count = path->wakeup_count;

	index_empty(&path->last_wakeups);
	path->wakeup_count = 0;
	for (size_t i = 0; i < count; i++) {
		struct wakeup wakeup = path->wakeups[i].wakeup;

		if (wakeup.wake_ns >= since_ns)
			critical_path_wakeup(path, &wakeup);
	}
}

/* Tells all of the scans before `from`, and forgets them: a wait that goes on has not ended in
 * these. */
static void path_forget(struct critical_path *path, size_t from, path_taker *take, void *to)
{
	bool all = from == path->scan_count;

	if (!path->scan_count)
		return;
	for (size_t i = 0; i < path->episode_count; i++)
		if (path->episodes[i].path != EPISODE_NONE)
			episode_tell(path, &path->episodes[i], from, take, to);
	held_tell(path, all ? INT64_MAX : path->scans[from].time_us, take, to);
	episodes_forget(path, from);
	wakeups_forget(path,
		       all ? path->scans[from - 1].moment_ns + 1 : path->scans[from].moment_ns);
	path->scan_count -= from;
	memmove(path->scans, path->scans + from, path->scan_count * sizeof(*path->scans));
}

static bool is_full(const struct critical_path *path)
{
	return path->scan_count >= PATH_SCANS_MAX || path->episode_count >= PATH_EPISODES_MAX;
}

void critical_path_end_scan(struct critical_path *path, int64_t until_ns, path_taker *take,
			    void *to)
{
	size_t left = 0;

	for (size_t i = 0; i < path->open_count; i++) {
		size_t place = path->open[i];
		struct path_episode *episode = &path->episodes[place];

		if (!episode_known(path, episode, until_ns)) {
			path->open[left++] = place;
			continue;
		}
		episode->path = episode_doubted(path, episode) ? EPISODE_DOUBTED : EPISODE_NONE;
		if (episode->path == EPISODE_NONE)
			episode_tell(path, episode, SIZE_MAX, take, to);
	}
	path->open_count = left;
	if (is_full(path))
		path_forget(path, (path->scan_count + 3) / 4, take, to);
	if (is_full(path))
		critical_path_settle(path, take, to);
}

void critical_path_settle(struct critical_path *path, path_taker *take, void *to)
{
	path_forget(path, path->scan_count, take, to);
}

void critical_path_done(struct critical_path *path)
{
	index_clear(&path->last_episodes);
	index_clear(&path->last_wakeups);
	index_clear(&path->ends);
	free(path->scans);
	free(path->episodes);
	free(path->wakeups);
	free(path->open);
	free(path->held);
	free(path->led_to);
	*path = (struct critical_path){0};
}
