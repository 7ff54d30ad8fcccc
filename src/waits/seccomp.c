/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System calls about which a seccomp(2) filter asks a supervisor, seccomp_unotify(2): a process
 * that has the filter's listener, as the manager of a container does. */
#include "proc/proc.h"
#include "waits/wait_object.h"

#include <stdio.h>

#define LISTENER_LINK "anon_inode:seccomp notify"

/* which: LISTENER_LINK, any listener; followed by " not PID", one of another process. */
static bool listener_is(const char *root, int64_t pid, int fd, const char *which)
{
	int64_t uid, process;
	long long other;

	if (!proc_fd_is(root, 0, pid, fd, LISTENER_LINK))
		return false;
	return sscanf(which, LISTENER_LINK " not %lld", &other) != 1 ||
	       (!proc_ids_read(root, pid, &uid, &process) && process != other);
}

/* The only process that has a listener, apart from the thread's own: the kernel does not show whose
 * filter a listener is of. 0: not known. */
static int64_t supervisor_find(struct wait *wait)
{
	static const struct holder_file listener = {LISTENER_LINK, listener_is};
	int64_t pid = wait_find_file(wait, &listener, LISTENER_LINK);
	char others[64];

	if (!pid)
		return 0;
	snprintf(others, sizeof(others), LISTENER_LINK " not %lld", (long long)pid);
	return wait_find_file(wait, &listener, others) || wait->pending ? 0 : pid;
}

static void seccomp_describe(struct wait *wait)
{
	wait->facts.stored = true;
	text_add_string(wait->text, "seccomp supervisor");
	if (!wait->numbers_only)
		wait_on_server(wait, " ", supervisor_find(wait));
}

/* A supervisor that tsnap does not see, as outside of its pid namespace, may be another one. */
static void seccomp_edge(const struct wait_facts *facts, const struct sample *sample,
			 struct edge *edge)
{
	server_edge(facts, sample, edge);
	if (edge->kind != EDGE_NONE)
		edge->sure = SURE_LIKELY;
}

const struct wait_object seccomp_object = {
	.kind = WAIT_FILE,
	.functions =
		(const char *const[]){"seccomp_do_user_notification", "__seccomp_filter", NULL},
	.describe = seccomp_describe,
	.edge = seccomp_edge,
	.searched = true,
};
