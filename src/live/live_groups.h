/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Probes that the samples that are asked for need. Pure.
 *
 * Always compiled: sched_switch, sched_wakeup (states, and the list of who is to be read),
 * thread_new, thread_exit, thread_exec (tids begin, end and change hands), on_cpu (a switch that
 * was missed). Only for who asks: the other fragments of bpf_text, and within these
 * KEEP_REGISTERS, KEEP_TOTALS, KEEP_WAKER and KEEP_PROGRAM (enum record_part).
 */
#ifndef TSNAP_LIVE_LIVE_GROUPS_H
#define TSNAP_LIVE_LIVE_GROUPS_H

#include <stdint.h>

/* Needs that only a probe of their own gives, which costs those who do not ask: --share, whose
 * attachers may ask for all else, leaves them out unless it is asked itself. */
#define NEEDS_PROBED (NEED_BLOCK | NEED_CALL_TIME | NEED_PATH)

/* For which records keep registers, or they are asked for. Events bring their own. */
#define NEEDS_REGISTERS (NEED_SYSCALL | NEED_USTACK)

/* needs: NEED_*, of columns and filters. Bits 1 << GROUP_x (kernel/probe_table.h). */
unsigned int live_groups_of(uint64_t needs);
/* Returns the parts that records keep for these needs. Bits 1 << PART_x. */
unsigned int live_parts_of(uint64_t needs);

#endif
