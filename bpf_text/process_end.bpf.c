/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A thread ends, perhaps its process with it: process_ends() of incident.bpf.c.
 *
 * Knobs: PROCESS_END_RAW or PROCESS_END_TRACEPOINT.
 */

#ifndef INCIDENTS_SEEN
#define process_ends()
#endif

#ifdef PROCESS_END_RAW
RAW_TRACEPOINT_PROBE(sched_process_exit)
{
	process_ends();
	return 0;
}
#endif

#ifdef PROCESS_END_TRACEPOINT
TRACEPOINT_PROBE(sched, sched_process_exit)
{
	process_ends();
	return 0;
}
#endif
