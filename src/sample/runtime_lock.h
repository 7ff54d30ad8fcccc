/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A lock of a language's runtime, as unwind/runtime finds it for waits. */
#ifndef TSNAP_SAMPLE_RUNTIME_LOCK_H
#define TSNAP_SAMPLE_RUNTIME_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "sample/edge_kind.h"

/* A thread in futex(2). */
struct runtime_waiter {
	int64_t pid, tid;
	int64_t now_ns; /* monotonic */
	uint64_t futex, episode;
	bool with_location; /* the holder's position in its program is wanted */
};

/* The lock that a thread waits for, and its holder. */
struct runtime_lock {
	enum edge_kind kind; /* its name is the lock's */
	uint64_t address;    /* 0: the process has only one such lock */
	bool free;	     /* no thread holds it */
	int64_t holder;	     /* id of a thread, as its process knows it; 0: not known */
	int64_t turn;	     /* a number that differs for each holder */
	bool changing;	     /* the holder may be about to change */
	bool lost;	     /* its holder has ended */
	bool later;	     /* not found yet: a later scan may find it */
	char class[64];	     /* its name, in place of the kind's; "": that of the kind */
	char location[176];  /* position of the holder in its program; "": not known */
};

/* True if the thread waits for a runtime's lock. */
typedef bool runtime_lock_finder(void *finder, const struct runtime_waiter *waiter,
				 struct runtime_lock *lock);

#endif
