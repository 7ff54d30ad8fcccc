/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Locks of PostgreSQL between its sessions. What its memory shows (src/apps/postgres.c) is right:
 * whether a session waits for a lock, and who has it. Of other versions than are known there, the
 * title shows that each session gives its process (update_process_title, which is on by default):
 * "postgres: user base [local] UPDATE waiting" waits for a lock, one with "idle in transaction" or
 * a command keeps what it has locked. If there is only one of these, it is likely to be the holder.
 */
#include "base/clock.h"
#include "proc/proc.h"
#include "proc/processes.h"
#include "waits/wait_object.h"

#include <ctype.h>
#include <string.h>

#define TITLE "postgres: "
#define IDLE_HOLDER "idle in transaction"
#define FRESH_NS (NS_PER_SECOND / 4)
#define SERVERS_MAX 64
#define SESSIONS_MAX 1000 /* children that are looked at; of more, none is the holder */

struct postgres {
	struct cache_entry entry; /* key: process of the server */
	int64_t read_ns;
	int64_t holders, holder; /* sessions that are in a transaction: their number, and one */
	bool idle;
};

static struct cache servers = {.entry_bytes = sizeof(struct postgres), .entries_max = SERVERS_MAX};

static bool ends_in_command(const char *title)
{
	const char *last = strrchr(title, ' ');

	return last && isupper((unsigned char)last[1]) && isupper((unsigned char)last[2]);
}

static void session_add(struct postgres *server, int64_t pid, const char *title)
{
	bool idle = strstr(title, " " IDLE_HOLDER);

	if (strncmp(title, TITLE, strlen(TITLE)) != 0 || (!idle && !ends_in_command(title)))
		return;
	server->holders++;
	server->holder = pid;
	server->idle = idle;
}

struct session_walk {
	struct wait *wait;
	struct postgres *server;
	int count;
};

static bool session_visit(void *to, int64_t pid)
{
	struct session_walk *walk = to;
	char title[PROC_CMDLINE_BYTES];

	if (++walk->count > SESSIONS_MAX) {
		walk->server->holders = 0;
		return false;
	}
	if (proc_cmdline_read(walk->wait->waits->root, pid, pid, title) > 0)
		session_add(walk->server, pid, title);
	return true;
}

/* Describes a wait for the lock that a session has; holder ABSENT: it is not known which. */
static void lock_describe(struct wait *wait, int64_t holder, bool idle)
{
	wait->facts = wait_facts_absent;
	text_clear(wait->text);
	text_add_string(wait->text, edge_kinds[EDGE_DATABASE].name);
	if (holder == ABSENT)
		return;
	if (idle)
		text_add_string(wait->text, " (" IDLE_HOLDER ")");
	wait_add_thread(wait, ", likely held by ", holder);
	wait->facts.tid = wait->facts.pid = holder;
}

static bool waits_for_lock(struct wait *wait, const struct app_lock *lock)
{
	char title[PROC_CMDLINE_BYTES];
	bool idle;

	if (!lock->waits)
		return false;
	idle = lock->holder &&
	       proc_cmdline_read(wait->waits->root, lock->holder, lock->holder, title) > 0 &&
	       strstr(title, " " IDLE_HOLDER);
	lock_describe(wait, lock->holder ? lock->holder : ABSENT, idle);
	return true;
}

static bool waits_for_session(struct wait *wait)
{
	const char *comm =
		comm_find(wait->waits->comms, wait->waits->root, wait->pid, wait->now_ns);
	struct session_walk walk = {.wait = wait};
	char title[PROC_CMDLINE_BYTES];
	struct postgres *server;
	struct app_lock lock;
	struct proc_stat stat;
	bool added;

	if (!comm || strcmp(comm, "postgres") != 0)
		return false;
	if (wait->waits->app_locks && wait->waits->app_locks(wait->waits->app_finder, wait->pid,
							     wait->tid, wait->now_ns, &lock))
		return waits_for_lock(wait, &lock);
	if (proc_cmdline_read(wait->waits->root, wait->pid, wait->tid, title) <= 0 ||
	    strncmp(title, TITLE, strlen(TITLE)) != 0 || !strstr(title, " waiting") ||
	    proc_stat_read(wait->waits->root, wait->pid, wait->tid, &stat))
		return false;
	server = cache_get(&servers, (uint64_t)stat.ppid, wait->now_ns, &added);
	if (added || wait->now_ns - server->read_ns >= FRESH_NS) {
		server->read_ns = wait->now_ns;
		server->holders = 0;
		walk.server = server;
		proc_children_walk(wait->waits->root, stat.ppid, stat.ppid, session_visit, &walk);
	}
	lock_describe(wait, server->holders == 1 ? server->holder : ABSENT, server->idle);
	return true;
}

static void session_edge(const struct wait_facts *facts, const struct sample *sample,
			 struct edge *edge)
{
	(void)sample;
	if (facts->tid == ABSENT)
		return;
	edge->kind = EDGE_DATABASE;
	edge->sure = SURE_LIKELY;
	edge->tid = facts->tid;
	edge->pid = facts->pid;
}

const struct wait_object postgres_object = {
	.kind = WAIT_LOCK,
	.serves = SERVES_NONE,
	.of_idle_set = waits_for_session,
	.edge = session_edge,
	.passes_on = true,
	.threads_end = true,
	.known = &servers,
};
