/* SPDX-License-Identifier: GPL-2.0-or-later */
/* State about waits, and functions for the describers of wait_table.c. */
#include "waits/waits_state.h"
#include "base/memory.h"
#include "base/shown_pid.h"
#include "proc/comm.h"
#include "proc/proc.h"
#include "proc/user_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SERVED_IDLE_NS (3600 * NS_PER_SECOND) /* long, as a thread may wait for a lock for long */
#define LONG_SETS_IDLE_NS (60 * NS_PER_SECOND)
#define FDINFO_BYTES 262144 /* some 3000 descriptors of an epoll set, 12 000 polls of a ring */

struct waits *waits_new(const char *proc_root, struct cache *comms)
{
	struct waits *waits = memory_get(sizeof(*waits));

	waits->root = proc_root;
	waits->own_ids = !strcmp(proc_root, "/proc") && shown_pid() == getpid();
	waits->comms = comms;
	waits->classes.daemon_ports = DAEMON_PORTS_DEFAULT;
	wait_episodes_init(&waits->episodes);
	locks_init(&waits->locks);
	served_init(&waits->served);
	long_sets_init(&waits->long_sets);
	outer_threads_init(&waits->outer_threads);
	holders_init(&waits->holders, waits->root);
	sockets_init(&waits->sockets, waits->root, &waits->holders, comms);
	return waits;
}

void waits_free(struct waits *waits)
{
	if (!waits)
		return;
	cache_done(&waits->episodes);
	cache_done(&waits->locks);
	cache_done(&waits->served);
	cache_done(&waits->long_sets);
	cache_done(&waits->outer_threads);
	sockets_done(&waits->sockets);
	holders_done(&waits->holders);
	cgroup_mount_done(&waits->memory_group);
	user_memory_sweep(&waits->memory, INT64_MAX);
	lock_list_done(&waits->file_locks);
	index_clear(&waits->functions);
	index_clear(&waits->classes.rules);
	text_done(&waits->text);
	free(waits);
}

void waits_sweep(struct waits *waits, int64_t now_ns, int64_t idle_ns)
{
	/* facts of a wait that goes on are requested again only when they are stale */
	idle_ns += WAIT_LONGEST_NS;
	cache_sweep(&waits->episodes, now_ns, idle_ns);
	cache_sweep(&waits->locks, now_ns, idle_ns);
	cache_sweep(&waits->served, now_ns, SERVED_IDLE_NS);
	cache_sweep(&waits->long_sets, now_ns, LONG_SETS_IDLE_NS);
	cache_sweep(&waits->outer_threads, now_ns, idle_ns);
	sockets_sweep(&waits->sockets, now_ns, idle_ns);
	holders_sweep(&waits->holders, now_ns, idle_ns);
	user_memory_sweep(&waits->memory, now_ns);
}

int waits_sockets_error(const struct waits *waits)
{
	return waits->sockets.namespaces.err;
}

void waits_set_runtime_locks(struct waits *waits, runtime_lock_finder *find, void *finder)
{
	waits->runtime_locks = find;
	waits->runtime_lock_finder = finder;
}

bool wait_runtime_lock(const struct wait *wait, uint64_t futex, struct runtime_lock *lock)
{
	struct waits *waits = wait->waits;
	bool for_class = wait->numbers_only && !wait->anew, found;
	int64_t start_ns, took_ns;

	lock->later = for_class && waits->classes.locks_left_ns <= 0;
	if (!waits->runtime_locks || lock->later)
		return false;
	start_ns = for_class ? clock_monotonic_ns() : 0;
	found = waits->runtime_locks(waits->runtime_lock_finder, wait, futex, !wait->numbers_only,
				     lock);
	if (for_class) {
		took_ns = clock_monotonic_ns() - start_ns;
		waits->classes.locks_left_ns -= took_ns;
		waits->classes.left_ns += took_ns;
	}
	return found;
}

bool wait_own_ids(const struct wait *wait)
{
	return wait->waits->own_ids;
}

const char *wait_root(const struct wait *wait)
{
	return wait->waits->root;
}

struct sockets *wait_sockets(const struct wait *wait)
{
	return &wait->waits->sockets;
}

struct holders *wait_holders(const struct wait *wait)
{
	return &wait->waits->holders;
}

struct cache *wait_locks(const struct wait *wait)
{
	return &wait->waits->locks;
}

struct cache *wait_served(const struct wait *wait)
{
	return &wait->waits->served;
}

struct cache *wait_long_sets(const struct wait *wait)
{
	return &wait->waits->long_sets;
}

struct cache *wait_outer_threads(const struct wait *wait)
{
	return &wait->waits->outer_threads;
}

struct lock_list *wait_file_locks(const struct wait *wait)
{
	return &wait->waits->file_locks;
}

bool wait_memory_read(const struct wait *wait, uint64_t address, void *bytes, size_t size)
{
	return user_memory_read_again(&wait->waits->memory, wait_root(wait), wait->pid, wait->tid,
				      wait->now_ns, address, bytes, size) == (ssize_t)size;
}

const char *wait_fdinfo(const struct wait *wait, bool *cut)
{
	static char text[FDINFO_BYTES];
	char name[32];
	ssize_t length;

	snprintf(name, sizeof(name), "fdinfo/%d", wait->fd);
	length = proc_file_read(wait_root(wait), wait->pid, wait->tid, name, text, sizeof(text));
	if (length < 0)
		*text = '\0';
	if (cut)
		*cut = length == sizeof(text) - 1;
	return text;
}

uint64_t wait_address(const struct wait *wait, int arg)
{
	return wait->compat ? (uint32_t)wait->arg[arg] : (uint64_t)wait->arg[arg];
}

void wait_add_thread(struct wait *wait, const char *before, int64_t tid)
{
	const char *comm;

	if (wait->numbers_only)
		return;
	comm = comm_find(wait->waits->comms, wait_root(wait), tid, wait->now_ns);
	text_add_format(wait->text, "%s%lld%s%s", before, (long long)tid, comm ? " " : "",
			comm ? comm : "");
}
