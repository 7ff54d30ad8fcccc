/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What was found out of each thread's last wait, which may go on: from when it went to sleep in a
 * system call, or elsewhere in the kernel, until it ran again. A next wait in the same call, on the
 * same file, begins with some of it: that is why live/scan/episodes.h, which knows a wait until it
 * ends, does not keep it. For waits.c.
 */
#ifndef TSNAP_WAITS_LAST_WAIT_H
#define TSNAP_WAITS_LAST_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cache.h"
#include "base/clock.h"
#include "proc/lookup_hint.h"
#include "sample/sample.h"
#include "sample/wait_rule.h"

#define WAIT_STILL_NS NS_PER_SECOND /* facts of a wait are used for one to two times this */
#define WAIT_SAME_MAX 2		    /* limit of doublings of that time: see `same` */
#define WAIT_LONGEST_NS (2 * WAIT_STILL_NS << WAIT_SAME_MAX)

struct last_wait {
	struct cache_entry entry; /* key: tid */
	/* the wait */
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
	int64_t net_until_ns; /* when its connection is to be asked about again; 0: it need not */
	bool pending;	      /* a later scan knows more */
	bool elsewhere;	      /* it waits for something else than its call does */
	bool of_thread; /* the facts are of this thread alone: other threads in the same call may
			   have others */
	uint64_t known; /* NEED_* */
	const char *connection, *remote, *filetype, *waits_on, *wchan, *serves;
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

/* Initializes a cache of last waits. */
void last_waits_init(struct cache *last_waits);

/* The thread's present wait. Its facts are not stale, but may be unknown. */
struct last_wait *last_wait_find(struct cache *last_waits, const struct sample *sample,
				 const struct lookup_hint *hint, int64_t now_ns);

/* Monotonic time at which facts of a thread's wait that were read at read_ns become stale: each
 * thread has a turn of its own within a second, so that threads that were first seen in one scan
 * don't all come due in one scan. */
int64_t wait_still_until(int64_t tid, int64_t read_ns);
/* Monotonic time at which the wait's facts become stale: a second or two after they were read,
 * eight at most if the other end has stayed the same, or the next scan if that may know more, or
 * must find out whether the thread waits in its call. */
int64_t last_wait_until(const struct last_wait *last);

/* The facts of the wait; *whole: they are complete. While the other end is searched for again,
 * these are the facts of a few seconds ago in the same wait. */
const struct wait_facts *last_wait_facts(const struct last_wait *last, bool *whole);

/* True if facts that are still missing can't change the wait class. */
bool wait_facts_suffice(const struct wait_facts *facts);

#endif
