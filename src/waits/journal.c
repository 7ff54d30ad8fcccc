/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commits of the journal of ext4 (jbd2), which a kernel thread of the file system's device makes:
 * "jbd2/sda1-8". */
#include "base/index.h"
#include "proc/devices.h"
#include "proc/proc.h"
#include "proc/processes.h"
#include "waits/wait_object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KTHREADD "/2/task/2/children" /* parent of kernel threads; CONFIG_PROC_CHILDREN */
#define COMM_LENGTH 15
#define JOURNALS_MAX 1024

struct journal {
	struct cache_entry entry; /* key: device */
	int64_t tid;
};

static struct cache journals = {.entry_bytes = sizeof(struct journal), .entries_max = JOURNALS_MAX};

/* True if the thread has that name, as far as the kernel keeps it. */
static bool is_named(const struct wait *wait, int64_t tid, const char *name)
{
	const char *comm =
		tid ? comm_find(wait->waits->comms, wait->waits->root, tid, wait->now_ns) : NULL;
	size_t length = strlen(name);

	return comm && !strncmp(comm, name, length < COMM_LENGTH ? length : COMM_LENGTH);
}

/* The kernel thread of that name; 0: none is found. */
static int64_t kthread_find(const struct wait *wait, const char *name)
{
	char path[PATH_MAX];
	struct proc_stat stat;
	long long tid;
	int64_t found = 0;
	FILE *children;

	snprintf(path, sizeof(path), "%s" KTHREADD, wait->waits->root);
	children = fopen(path, "re");
	while (children && !found && fscanf(children, "%lld", &tid) == 1)
		if (is_named(wait, tid, name) &&
		    !proc_stat_read(wait->waits->root, 0, tid, &stat) && stat.ppid == 2)
			found = tid;
	if (children)
		fclose(children);
	return found;
}

static void journal_describe(struct wait *wait)
{
	struct mount_facts mount;
	struct journal *journal;
	char name[80];
	bool added;

	wait->facts.stored = true;
	text_add_string(wait->text, "journal commit");
	if (wait->numbers_only || !wait_mount(wait, &mount) || !(mount.device >> 20))
		return;
	snprintf(name, sizeof(name), "jbd2/%s-", device_name(mount.device));
	journal = cache_get(&journals, mount.device, wait->now_ns, &added);
	if (!is_named(wait, journal->tid, name))
		journal->tid = kthread_find(wait, name);
	wait_on_server(wait, " by ", journal->tid);
}

const struct wait_object journal_object = {
	.kind = WAIT_FILE,
	.functions = (const char *const[]){"jbd2_log_wait_commit", "wait_transaction_locked",
					   "wait_transaction_switching", "add_transaction_credits",
					   "jbd2_journal_lock_updates", NULL},
	.describe = journal_describe,
	.edge = server_edge,
	.known = &journals,
};
