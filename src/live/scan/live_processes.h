/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Processes and threads that are wanted: -p by ids and names, -r with their descendants, -t. Their
 * ids in the filter follow them: the id of a process that has ended is removed, as it may be
 * another's by then. */
#ifndef TSNAP_LIVE_LIVE_PROCESSES_H
#define TSNAP_LIVE_LIVE_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/text.h"
#include "kernel/record.h"
#include "live/context/live_config.h"
#include "proc/process_set.h"
#include "sample/filter/filter.h"

#define LIVE_ENDED_MAX 256

/* An ended process of which something may still be reported. */
struct ended_process {
	int64_t pid; /* 0: none */
	int64_t at_ns;
};

/* Zeroed is empty. */
struct live_processes {
	struct filter *filter; /* the caller's */
	const char *listed;    /* -p as typed; NULL: all */
	char *names;	       /* names of -p, looked for again as time goes; NULL: none */
	struct process_set wanted, threads; /* living processes of -p and -r, threads of -t */
	struct ended_process ended[LIVE_ENDED_MAX]; /* wanted processes that ended last */
	unsigned int ended_at;
	size_t added;	/* processes added by the present walk over descendants */
	int64_t now_ns; /* time of the last check, monotonic */
};

/* Resolves -p and -r into the filter. 0, or -errno with e. */
int live_processes_find(struct live_processes *processes, const struct live_config *config,
			struct filter *filter, struct text *remarks, struct error *e);
void live_processes_done(struct live_processes *processes);

/* Drops processes that have ended. Call after each capture. look: look for names again, too. */
void live_processes_check(struct live_processes *processes, int64_t now_ns, bool look);

/* Adds the process of the record if it is a child of a wanted one (-r). */
void live_processes_child(struct live_processes *processes, const struct thread_state *record);

#endif
