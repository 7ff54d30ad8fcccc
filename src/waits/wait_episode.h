/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Wait episodes: facts about a thread from when it goes to sleep in a system call, or elsewhere in
 * the kernel, until it runs again. For waits.c.
 */
#ifndef TSNAP_WAITS_WAIT_EPISODE_H
#define TSNAP_WAITS_WAIT_EPISODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cache.h"
#include "base/clock.h"
#include "proc/lookup_hint.h"
#include "sample/sample.h"
#include "sample/wait_rule.h"

#define WAIT_STILL_NS NS_PER_SECOND /* facts of an episode are used for one to two times this */
#define WAIT_SAME_MAX 2		    /* limit of doublings of that time: see `same` */
#define WAIT_LONGEST_NS (2 * WAIT_STILL_NS << WAIT_SAME_MAX)

struct wait_episode {
	struct cache_entry entry; /* key: tid */
	/* the episode */
	int64_t start_ns; /* start time of the thread */
	uint64_t sequence;
	int64_t syscall_nr, first_arg, second_arg;
	const char *link; /* link of the call's descriptor */
	/* It was found to wait in its call (wait_object_elsewhere()): until its next switch it
	 * does. Once it was found so at in_call_ns, a wait that is like it is assumed to be in its
	 * call, too, until the next scan. */
	bool in_call, assumed;
	int64_t in_call_ns;
	/* the result */
	int64_t read_ns;
	bool pending;	/* a later scan knows more */
	bool of_thread; /* the facts are of this thread alone: other threads in the same call may
			   have others */
	uint64_t known; /* NEED_* */
	const char *connection, *remote, *filetype, *waits_on, *wchan;
	struct wait_facts facts;
	/* facts of an earlier lookup in the same wait, used while a scan has no time to look
	 * again */
	struct wait_facts facts_before;
	bool judged_before; /* facts_before suffice for a wait class */
	int64_t whole_ns; /* end of the time in which facts_before were complete for NEED_WAITS; 0:
			     they were not */
	/* the other end of the pipe or connection as the last complete lookup found it, in this
	 * wait or an earlier one of the thread, and how many consecutive lookups did: it seldom
	 * changes hands, as a lock often does */
	struct wait_end {
		enum wait_kind kind;
		int64_t pid, inode, count;
	} end;
	unsigned int same;
};

/* Initializes a cache of wait episodes. */
void wait_episodes_init(struct cache *episodes);

/* The thread's present episode. Its facts are not stale, but may be unknown. */
struct wait_episode *wait_episode_find(struct cache *episodes, const struct sample *sample,
				       const struct lookup_hint *hint, int64_t now_ns);

/* Monotonic time at which facts of a thread's wait that were read at read_ns become stale: each
 * thread has a turn of its own within a second, so that threads that were first seen in one scan
 * don't all come due in one scan. */
int64_t wait_still_until(int64_t tid, int64_t read_ns);
/* Monotonic time at which the episode's facts become stale: a second or two after they were read,
 * eight at most if the other end has stayed the same, or the next scan if that may know more, or
 * must find out whether the thread waits in its call. */
int64_t wait_episode_until(const struct wait_episode *episode);

/* The facts of the wait; *whole: they are complete. While the other end is searched for again,
 * these are the facts of a few seconds ago in the same wait. */
const struct wait_facts *wait_episode_facts(const struct wait_episode *episode, bool *whole);

/* True if facts that are still missing can't change the wait class. */
bool wait_facts_suffice(const struct wait_facts *facts);

#endif
