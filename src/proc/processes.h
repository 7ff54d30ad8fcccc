/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Facts that all threads of a process share, and names and processes of threads other than the
 * sampled one, read from /proc once for all who want them, and cached for a short time. */
#ifndef TSNAP_PROC_PROCESSES_H
#define TSNAP_PROC_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>

struct cache;
struct sample;

#define COMMS_MAX 65536

void comms_init(struct cache *comms);
/* The thread's name, interned, up to LOOKUP_RAN_NS old; NULL: there is no such thread. */
const char *comm_find(struct cache *comms, const char *root, int64_t tid, int64_t now_ns);
/* The thread's process, up to LOOKUP_RAN_NS old; ABSENT: there is no such thread. */
int64_t comm_pid_find(struct cache *comms, const char *root, int64_t tid, int64_t now_ns);

#define PROCESSES_MAX 65536

void processes_init(struct cache *processes);

/* Returns the facts that are in needs, of the process that the sampled thread belongs to; valid
 * until the next call. renew: values that were read before are out of date (exec). */
const struct sample_process *process_facts(struct cache *processes, const char *root,
					   const struct sample *sample, uint64_t needs, bool renew,
					   int64_t now_ns);
/* Returns the control group of that process' leader. */
const char *process_cgroup(struct cache *processes, const char *root, const struct sample *sample,
			   int64_t now_ns);

#endif
