/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Forks, execs and exits by name and user, as bpf_text/processes.bpf.c counts them. */
#ifndef TSNAP_MAPS_PROCESS_TOTALS_H
#define TSNAP_MAPS_PROCESS_TOTALS_H

#include "kernel/record.h"

/* map: -1 where nobody asked for it. Once, before the probes are attached. 0 or -errno. */
int process_totals_begin(int map);

/* Calls visit for each row there is. Rows are added and counted meanwhile, but none goes. */
void process_totals_visit(int map,
			  void (*visit)(void *to, const struct process_key *key,
					const struct process_totals *totals),
			  void *to);

/* Calls visit for each row of the first of two maps whose probes are both attached (the first one's
 * were first), with what the second has of it (nothing, maybe) after the very same events. So who
 * counts on from there tells each event once. A row that the second alone has is one that began
 * meanwhile. */
void process_totals_visit_both(int map, int second,
			       void (*visit)(void *to, const struct process_key *key,
					     const struct process_totals *totals,
					     const struct process_totals *seconds),
			       void *to);

#endif
