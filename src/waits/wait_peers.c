/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "waits/wait_peers.h"
#include "base/index.h"
#include "proc/fd_dirs.h"
#include "proc/syscalls.h"

#include <string.h>

/* Key of the sample's wait. Of a call on a descriptor only the descriptor counts: other arguments
 * are buffers and sizes. */
static struct wait_peer peer_of(const struct sample *sample, const struct lookup_hint *hint)
{
	int fd = syscall_fd(sample->call.nr, hint->compat, sample->call.arg);
	struct wait_peer peer = {
		.pid = sample->thread.pid,
		.tid = sample->thread.tid,
		.syscall_nr = sample->call.nr,
		.compat = hint->compat,
	};

	if (fd >= 0)
		peer.arg[0] = fd;
	else
		memcpy(peer.arg, sample->call.arg, sizeof(peer.arg));
	return peer;
}

static struct wait_peer *slot_of(struct wait_peers *peers, const struct wait_peer *peer)
{
	return &peers->peers[hash_u64((uint64_t)peer->pid ^ (uint64_t)peer->syscall_nr << 32 ^
				      hash_u64((uint64_t)peer->arg[0])) %
			     WAIT_PEERS_MAX];
}

/* Compares descriptor tables, too: two threads of a process can have different ones. */
const struct wait_facts *wait_peers_find(struct wait_peers *peers, const struct sample *sample,
					 const struct lookup_hint *hint, int64_t now_ns)
{
	struct wait_peer requested = peer_of(sample, hint), *peer = slot_of(peers, &requested);

	if (peer->now_ns != now_ns || peer->pid != requested.pid ||
	    peer->syscall_nr != requested.syscall_nr || peer->compat != requested.compat ||
	    memcmp(peer->arg, requested.arg, sizeof(requested.arg)) != 0)
		return NULL;
	/* a futex is found by its address, and threads of a process have one memory */
	if (peer->facts.kind == WAIT_LOCK &&
	    syscall_fd(sample->call.nr, hint->compat, sample->call.arg) < 0)
		return &peer->facts;
	return fd_are_shared(peer->tid, requested.tid) ? &peer->facts : NULL;
}

void wait_peers_put(struct wait_peers *peers, const struct sample *sample,
		    const struct lookup_hint *hint, int64_t now_ns, const struct wait_facts *facts)
{
	struct wait_peer peer = peer_of(sample, hint);

	peer.now_ns = now_ns;
	peer.facts = *facts;
	*slot_of(peers, &peer) = peer;
}
