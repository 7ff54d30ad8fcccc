/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Leases on files (F_SETLEASE of fcntl(2)): whoever opens such a file waits until the holder has
 * given the lease up. */
#include "waits/wait_object.h"
#include "sample/waits_on.h"

#include <stdio.h>

/* The process that has the only lease on that device which has to be given up: a line of
 * /proc/locks, "2: LEASE  BREAKING  READ 4711 fd:00:1234 0 EOF". The file itself is not looked up,
 * which could wait for a server. 0: not known. */
static int64_t lease_find(const struct wait *wait, const struct mount_facts *mount)
{
	char path[PATH_MAX], line[256];
	unsigned int major, minor;
	long long pid;
	int64_t found = 0;
	int leases = 0;
	FILE *locks;

	snprintf(path, sizeof(path), "%s/locks", wait->waits->root);
	locks = fopen(path, "re");
	while (locks && fgets(line, sizeof(line), locks)) {
		if (sscanf(line, "%*d: LEASE BREAKING %*s %lld %x:%x:", &pid, &major, &minor) !=
			    3 ||
		    (major << 20 | minor) != mount->device)
			continue;
		found = pid;
		leases++;
	}
	if (locks)
		fclose(locks);
	return leases == 1 ? found : 0;
}

static void lease_describe(struct wait *wait)
{
	struct mount_facts mount;

	wait->facts.stored = true;
	text_add_string(wait->text, "lease");
	if (wait->numbers_only)
		return;
	if (wait->link)
		text_add_format(wait->text, " on %s", wait->link);
	if (wait_mount(wait, &mount))
		wait_on_server(wait, WAITS_ON_HOLDER, lease_find(wait, &mount));
}

static void lease_edge(const struct wait_facts *facts, const struct sample *sample,
		       struct edge *edge)
{
	server_edge(facts, sample, edge);
	if (edge->kind != EDGE_NONE) {
		edge->kind = EDGE_FILE_LOCK;
		edge->sure = SURE_LIKELY; /* the lease may be on another file of the device */
	}
	edge->timed = true; /* the kernel breaks it after /proc/sys/fs/lease-break-time */
}

const struct wait_object lease_object = {
	.kind = WAIT_FILE,
	.functions = (const char *const[]){"__break_lease", NULL},
	.describe = lease_describe,
	.edge = lease_edge,
};
