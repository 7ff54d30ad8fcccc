/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Forks, execs and exits by name and user, as bpf_text/processes.bpf.c counts them. */
#ifndef TSNAP_MAPS_PROCESS_TOTALS_H
#define TSNAP_MAPS_PROCESS_TOTALS_H

#include "kernel/record.h"

/* Adds the row for all others; to be called once, before the probes are attached. map: -1 where
 * totals are not wanted. 0 or -errno. */
int process_totals_begin(int map);

/* Calls visit for each row there is. Rows are added and counted meanwhile, but none is deleted. */
void process_totals_visit(int map,
			  void (*visit)(void *to, const struct process_key *key,
					const struct process_totals *totals),
			  void *to);

/* Calls visit for each row of the first of two maps whose probes are both attached (those of the
 * first one came first), with the second map's row (zero if it has none) after the very same
 * events. So a caller that counts on from there counts each event once. A row that only the second
 * map has began meanwhile. */
void process_totals_visit_both(int map, int second,
			       void (*visit)(void *to, const struct process_key *key,
					     const struct process_totals *totals,
					     const struct process_totals *seconds),
			       void *to);

#endif
