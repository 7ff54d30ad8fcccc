/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Locks of PostgreSQL between its sessions, which are in shared memory that only the server can
 * read. What shows is the title that each session gives its process (update_process_title, which is
 * on by default): "postgres: user base [local] UPDATE waiting" waits for a lock, one with
 * "idle in transaction" or a command keeps what it has locked. If there is only one of these, it is
 * likely to be the holder.
 */
#include "base/clock.h"
#include "proc/proc.h"
#include "proc/processes.h"
#include "waits/wait_object.h"

#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define TITLE "postgres: "
#define CHILDREN "%s/%lld/task/%lld/children" /* CONFIG_PROC_CHILDREN */
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

static void sessions_read(struct wait *wait, struct postgres *server, int64_t parent)
{
	char path[PATH_MAX], title[PROC_CMDLINE_BYTES];
	FILE *children;
	long long pid;
	int count = 0;

	snprintf(path, sizeof(path), CHILDREN, wait->waits->root, (long long)parent,
		 (long long)parent);
	children = fopen(path, "re");
	server->read_ns = wait->now_ns;
	server->holders = 0;
	while (children && fscanf(children, "%lld", &pid) == 1 && ++count <= SESSIONS_MAX)
		if (proc_cmdline_read(wait->waits->root, pid, pid, title) > 0)
			session_add(server, pid, title);
	if (count > SESSIONS_MAX)
		server->holders = 0;
	if (children)
		fclose(children);
}

bool postgres_describe(struct wait *wait)
{
	const char *comm =
		comm_find(wait->waits->comms, wait->waits->root, wait->pid, wait->now_ns);
	char title[PROC_CMDLINE_BYTES];
	struct postgres *server;
	struct proc_stat stat;
	bool added;

	if (!comm || strcmp(comm, "postgres") != 0 ||
	    proc_cmdline_read(wait->waits->root, wait->pid, wait->tid, title) <= 0 ||
	    strncmp(title, TITLE, strlen(TITLE)) != 0 || !strstr(title, " waiting") ||
	    proc_stat_read(wait->waits->root, wait->pid, wait->tid, &stat))
		return false;
	server = cache_get(&servers, (uint64_t)stat.ppid, wait->now_ns, &added);
	if (added || wait->now_ns - server->read_ns >= FRESH_NS)
		sessions_read(wait, server, stat.ppid);
	wait->facts = wait_facts_absent;
	wait->facts.object = &postgres_object;
	wait->facts.kind = postgres_object.kind;
	text_clear(wait->text);
	text_add_string(wait->text, edge_kinds[EDGE_DATABASE].name);
	if (server->holders != 1)
		return true;
	if (server->idle)
		text_add_string(wait->text, " (" IDLE_HOLDER ")");
	wait_add_thread(wait, ", likely held by ", server->holder);
	wait->facts.tid = wait->facts.pid = server->holder;
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
	.edge = session_edge,
	.passes_on = true,
	.threads_end = true,
	.known = &servers,
};
