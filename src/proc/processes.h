/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Facts that all threads of a process share, read once for all of them and cached for a short
 * time. */
#ifndef TSNAP_PROC_PROCESSES_H
#define TSNAP_PROC_PROCESSES_H

#include <stdbool.h>
#include <stdint.h>

struct cache;
struct sample;

#define PROCESSES_MAX 65536

struct process_facts {
	int64_t ppid;		   /* ABSENT: not known */
	const char *cmdline, *exe; /* NULL: there is none */
	const char *cgroup;	   /* control group of the leader */
};

void processes_init(struct cache *processes);

/* Fills the facts that are in needs, of the process that the sampled thread belongs to. renew:
 * values that were read before are out of date (exec). */
void process_fill(struct cache *processes, const char *root, const struct sample *sample,
		  uint64_t needs, bool renew, int64_t now_ns, struct process_facts *facts);

#endif
