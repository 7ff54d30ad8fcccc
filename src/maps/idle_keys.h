/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tells the switch programs in which call each thread waits for something to do (--trace work,
 * bpf_text/work.h), as scans find it out.
 */
#ifndef TSNAP_MAPS_IDLE_KEYS_H
#define TSNAP_MAPS_IDLE_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernel/record.h"

struct idle_keys {
	struct work_slot *slots; /* NULL: there are none */
	uint32_t count;
};

/* A sleep that a scan saw. */
struct idle_sleep {
	uint32_t slot;		/* thread_state.key */
	uint64_t begun_boot_ns; /* thread_identity.start_boot_ns */
	uint32_t call;
	uint64_t argument, argument_mask;
	unsigned int rank; /* of two calls the one of higher rank is the idle one; from 1 on */
};

/* map: of that many slots; -1: none. 0 or -errno. */
int idle_keys_init(struct idle_keys *keys, int map, uint32_t count);
/* Notes an idle sleep. The first one makes the key. Another call of equal rank takes its place when
 * it was seen more often lately, a call of higher rank at once. */
void idle_keys_learn(struct idle_keys *keys, const struct idle_sleep *sleep);
/* True if the thread has left its idle call and not come back to it, and this sleep is in another
 * call: it is part of a piece of work. *call becomes the idle one. rank and argument_mask are not
 * used. */
bool idle_keys_has_piece(const struct idle_keys *keys, const struct idle_sleep *sleep,
			 uint32_t *call);
void idle_keys_done(struct idle_keys *keys);

#endif
