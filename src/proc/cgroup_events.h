/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Events that the kernel counts of control groups, and of which the process that they happen to
 * learns nothing but an error: forks that the limit of a group refused (pids.events), and
 * allocations for which a group had no memory left (memory.events; of v1 the processes that were
 * killed then, memory.oom_control). See admin-guide/cgroup-v2 and cgroup-v1 of the kernel's
 * documentation.
 *
 * Of v2 the local counts are taken (memory.events.local since 5.2, pids.events.local since 6.11),
 * so that groups above do not have the same event once more; else the others.
 */
#ifndef TSNAP_PROC_CGROUP_EVENTS_H
#define TSNAP_PROC_CGROUP_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/index.h"
#include "proc/cgroup.h"

#define CGROUP_EVENTS_GROUPS_MAX 16384 /* counts of further groups are not known */

enum cgroup_event_kind { CGROUP_FORK_REFUSED, CGROUP_OUT_OF_MEMORY, CGROUP_EVENT_KINDS };

struct cgroup_events {
	struct cgroup_mount mounts[CGROUP_EVENT_KINDS];
	struct index counts; /* hash of kind and path to the count, plus one */
	int64_t next_ns;     /* time before which nothing is read */
	bool begun;	     /* the first reading is over: what is new since then is an event */
	bool found;	     /* the mounts were looked for */
};

/* Takes the events of a group since the last reading. path: valid during the call. */
typedef void cgroup_event_callback(void *to, enum cgroup_event_kind kind, const char *path,
				   int64_t count);

/* Words for what happened, and for what refused: "fork refused", "pids.max". */
const char *cgroup_event_name(enum cgroup_event_kind kind);
const char *cgroup_event_limit(const struct cgroup_events *events, enum cgroup_event_kind kind);

/* Reads the counts of all groups, once a second at most and for a thousandth of the time: a group
 * takes 10 us. A zeroed struct is valid. proc_root: as for cgroup_mount_find(). */
void cgroup_events_read(struct cgroup_events *events, const char *proc_root, int64_t now_ns,
			cgroup_event_callback *take, void *to);
void cgroup_events_done(struct cgroup_events *events);

#endif
