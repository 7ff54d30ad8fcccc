/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TSNAP_WAITS_RUNTIME_LOCK_H
#define TSNAP_WAITS_RUNTIME_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "sample/edge_kind.h"

struct wait;

/* A lock of a language's runtime that a futex belongs to, and its holder. */
struct runtime_lock {
	enum edge_kind kind; /* its name is the lock's */
	uint64_t address;    /* 0: the process has only one such lock */
	bool free;	     /* no thread holds it */
	int64_t holder;	     /* id of a thread, as its process knows it; 0: not known */
	int64_t turn;	     /* a number that differs for each holder */
	bool changing;	     /* the holder may be about to change */
	bool later;	     /* not found yet: a later scan may find it */
	char location[176];  /* position of the holder in its program; "": not known */
};

/* True if the thread waits for a runtime's lock. with_location: fill lock->location. */
typedef bool runtime_lock_finder(void *finder, const struct wait *wait, uint64_t futex,
				 bool with_location, struct runtime_lock *lock);

#endif
