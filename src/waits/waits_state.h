/* SPDX-License-Identifier: GPL-2.0-or-later */
/* State about waits that lasts from scan to scan; for waits.c, waits_fill.c and wait_class.c
 * only. */
#ifndef TSNAP_WAITS_WAITS_STATE_H
#define TSNAP_WAITS_WAITS_STATE_H

#include "base/cache.h"
#include "base/text.h"
#include "proc/cgroup.h"
#include "proc/user_memory.h"
#include "waits/holders.h"
#include "waits/lock_list.h"
#include "waits/sockets.h"
#include "waits/wait_episode.h"
#include "waits/wait_peers.h"
#include "waits/waits.h"

/* State of the search for wait classes: wait_class.c. */
struct wait_classes {
	struct index rules; /* interned name of a call to the rule that it decides by, or 0 */
	struct wait_peers peers;
	int64_t daemon_ports;
	int64_t scan_ns, left_ns; /* the present scan, and the time that classes have left in it */
	int64_t locks_left_ns;	  /* time that it has left for locks of runtimes */
	int64_t changes_tid;	  /* see waits_class_changes() */
};

struct waits {
	const char *root;
	bool own_ids; /* ids in /proc are those that system calls of this process use */
	struct cache *comms;
	struct cache episodes;
	struct holders holders;
	struct sockets sockets;
	struct cache served; /* connections that threads serve: served.c */
	struct cache locks;  /* words of locks: futex.c */
	struct cache long_sets;
	struct cache outer_threads; /* threads without ids of another namespace: inner_ids.c */
	struct lock_list file_locks;
	struct user_memory memory;
	struct cgroup_mount memory_group; /* mount of the memory controller */
	bool memory_group_looked_for;
	struct index functions;		    /* interned name of a call to its describer, or 0 */
	runtime_lock_finder *runtime_locks; /* NULL: none */
	void *runtime_lock_finder;
	struct wait_classes classes;
	struct text text;
};

enum wait_depth {
	WAIT_NUMBERS_ANEW, /* like WAIT_NUMBERS, but values that this scan has read before are read
			      again */
	WAIT_NUMBERS,	   /* no text, no search for the process at the other end */
	WAIT_WHOLE,
};

/* Finds out what the thread of the sample waits for, into the episode. */
void wait_episode_fill(struct waits *waits, struct wait_episode *episode,
		       const struct sample *sample, const struct lookup_hint *hint,
		       enum wait_depth depth, int64_t now_ns);

/* True if the call was given a path, which is not open yet: a descriptor beside it is the
 * directory's. */
bool wait_call_names_path(const struct sample *sample, const struct lookup_hint *hint);

/* The rule that a call decides by, or whose kind of facts it needs (WAIT_SET); NULL: none. */
const struct wait_rule *wait_rule_known(struct wait_classes *classes, const char *syscall_name);

#endif
