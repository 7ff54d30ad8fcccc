/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Facts that this scan has found of waiting threads, for other threads of the same process that
 * wait in the same call for the same descriptor or lock: the hundreds of threads of a pool are
 * looked up once.
 */
#ifndef TSNAP_WAITS_WAIT_PEERS_H
#define TSNAP_WAITS_WAIT_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "proc/lookup_hint.h"
#include "sample/sample.h"
#include "sample/wait_rule.h"

#define WAIT_PEERS_MAX 256 /* slots by hash: later facts replace earlier ones */

/* Facts by wait. Zeroed is empty. */
struct wait_peers {
	struct wait_peer {
		int64_t now_ns; /* time of the scan; 0: empty slot */
		int64_t pid, tid;
		int64_t syscall_nr, arg[3];
		bool compat;
		struct wait_facts facts;
	} peers[WAIT_PEERS_MAX];
};

/* The facts of a thread that waits for the same, or NULL. Not for calls with a path argument. */
const struct wait_facts *wait_peers_find(struct wait_peers *peers, const struct sample *sample,
					 const struct lookup_hint *hint, int64_t now_ns);
void wait_peers_put(struct wait_peers *peers, const struct sample *sample,
		    const struct lookup_hint *hint, int64_t now_ns, const struct wait_facts *facts);

#endif
