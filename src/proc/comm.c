/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/comm.h"
#include "base/cache.h"
#include "proc/lookup_hint.h"
#include "proc/proc.h"
#include "base/names.h"
#include "sample/sample.h"

struct comm {
	struct cache_entry entry; /* key: tid */
	int64_t read_ns;
	bool name_known, pid_known;
	const char *name;
	int64_t pid;
};

void comms_init(struct cache *comms)
{
	*comms = (struct cache){.entry_bytes = sizeof(struct comm), .entries_max = COMMS_MAX};
}

static const char *comm_read(const char *root, int64_t tid)
{
	char comm[PROC_COMM_SIZE + 1];
	ssize_t length = proc_file_read(root, 0, tid, "comm", comm, sizeof(comm));

	if (length > 0 && comm[length - 1] == '\n')
		length--;
	return length > 0 ? name_transient(comm, length) : NULL;
}

/* Finds or adds the thread's entry; forgets name and pid after LOOKUP_RAN_NS. */
static struct comm *thread_find(struct cache *comms, int64_t tid, int64_t now_ns)
{
	bool added;
	struct comm *comm = cache_get(comms, (uint64_t)tid, now_ns, &added);

	if (added || now_ns - comm->read_ns >= LOOKUP_RAN_NS) {
		comm->name_known = comm->pid_known = false;
		comm->read_ns = now_ns;
	}
	return comm;
}

const char *comm_find(struct cache *comms, const char *root, int64_t tid, int64_t now_ns)
{
	struct comm *comm = thread_find(comms, tid, now_ns);

	if (!comm->name_known)
		comm->name = comm_read(root, tid);
	comm->name_known = true;
	return comm->name;
}

int64_t comm_pid_find(struct cache *comms, const char *root, int64_t tid, int64_t now_ns)
{
	struct comm *comm = thread_find(comms, tid, now_ns);
	int64_t uid;

	if (!comm->pid_known && proc_ids_read(root, tid, &uid, &comm->pid))
		comm->pid = ABSENT;
	comm->pid_known = true;
	return comm->pid;
}
