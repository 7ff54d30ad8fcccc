/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Probes that the requested facts need. Pure.
 *
 * Always compiled: sched_switch, sched_wakeup (states, and the list of records to be read),
 * thread_new, thread_exit, thread_exec (tids begin, end and change hands), on_cpu (a switch that
 * was missed). Compiled only if needed: the other fragments of bpf_text, and within these
 * KEEP_REGISTERS, KEEP_TOTALS, KEEP_WAKER and KEEP_PROGRAM (enum record_part).
 */
#ifndef TSNAP_LIVE_LIVE_GROUPS_H
#define TSNAP_LIVE_LIVE_GROUPS_H

#include <stdint.h>

/* Returns the probe groups for these needs (NEED_*, of columns and filters). Bits 1 << GROUP_x
 * (kernel/probe_table.h). */
unsigned int live_groups_of(uint64_t needs);
/* Returns the parts that records keep for these needs. Bits 1 << PART_x. */
unsigned int live_parts_of(uint64_t needs);

#endif
