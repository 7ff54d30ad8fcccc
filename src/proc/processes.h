/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Facts that all threads of a process share, read once for them and kept for a short time. */
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
	const char *cgroup;	   /* the leader's */
};

void processes_init(struct cache *processes);

/* Adds to facts what needs asks for, of the process that the sampled thread belongs to. renew: what
 * was read before is out of date (exec). */
void process_fill(struct cache *processes, const char *root, const struct sample *sample,
		  uint64_t needs, bool renew, int64_t now_ns, struct process_facts *facts);

#endif
