/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Wait episodes: what is known of a thread from when it goes to sleep in a call, or elsewhere in
 * the kernel, until it runs again. For waits.c, waits_fill.c and wait_class.c.
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

#define WAIT_STILL_NS NS_PER_SECOND /* facts of one episode serve so long, and to twice that */
#define WAIT_SAME_MAX 2		    /* and twice as long so many times: see `same` */
#define WAIT_LONGEST_NS (2 * WAIT_STILL_NS << WAIT_SAME_MAX)

struct wait_episode {
	struct cache_entry entry; /* key: tid */
	/* the episode */
	int64_t start_ns; /* the thread's */
	uint64_t sequence;
	int64_t syscall_nr, first_arg, second_arg;
	const char *link; /* file behind the call's descriptor */
	/* the answer */
	int64_t read_ns;
	bool pending;	/* a later scan knows more */
	bool of_thread; /* other threads of the process may wait for something else */
	uint64_t known; /* NEED_* */
	const char *connection, *remote, *filetype, *waits_on, *wchan;
	struct wait_facts facts;
	/* found out earlier in the same wait; serves while a scan has no time to look again */
	struct wait_facts facts_before;
	bool judged_before; /* they decide the wait's rule */
	int64_t whole_ns;   /* until when they were all of NEED_WAITS; 0: they are not */
	/* times in a row, before this one, that the other end was found to be the same: a pipe or
	 * a connection seldom changes hands while somebody waits for it, a lock often does */
	unsigned int same;
};

/* A zeroed cache becomes one of episodes. */
void wait_episodes_init(struct cache *episodes);

/* The episode that the thread is in, whose facts are not stale (but may not be known). */
struct wait_episode *wait_episode_find(struct cache *episodes, const struct sample *sample,
				       const struct lookup_hint *hint, int64_t now_ns);

/* When facts that were read then of a thread's wait are stale, monotonic: each thread has its turn
 * within a second, so that those seen first in one scan don't all come due in one. */
int64_t wait_still_until(int64_t tid, int64_t read_ns);
/* When its facts are stale, monotonic: in a second or two, in eight at most where the other end
 * has stayed the same, or with the next scan where that may know more. */
int64_t wait_episode_until(const struct wait_episode *episode);

/* What is known of the wait by now; *whole: all of it. While the other end is looked for anew, that
 * is what was known a few seconds ago in the same wait. */
const struct wait_facts *wait_episode_facts(const struct wait_episode *episode, bool *whole);

/* True if what is still looked for can't change the rule. */
bool wait_facts_suffice(const struct wait_facts *facts);

#endif
