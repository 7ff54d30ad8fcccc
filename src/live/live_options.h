/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the kernel is opened with: options made from the command line, for live and live_check, and
 * the probes that the requested facts need.
 *
 * Always compiled: sched_switch, sched_wakeup (states, and the list of records to be read),
 * thread_new, thread_exit, thread_exec (tids begin, end and change hands), on_cpu (a switch that
 * was missed). Compiled only if needed: the other fragments of bpf_text, and within these
 * KEEP_REGISTERS, KEEP_TOTALS, KEEP_WAKER and KEEP_PROGRAM (enum record_part).
 */
#ifndef TSNAP_LIVE_LIVE_OPTIONS_H
#define TSNAP_LIVE_LIVE_OPTIONS_H

#include "live/context/live_config.h"
#include "maps/kernel.h"
#include "sample/filter/filter.h"

/* needs: NEED_*, of columns and filters. filter: NULL: none. */
void live_kernel_options(const struct live_config *config, const struct filter *filter,
			 uint64_t needs, struct kernel_options *options);

/* Returns the probe groups for these needs (NEED_*, of columns and filters). GROUP_BIT()s
 * (kernel/probe_table.h). */
uint64_t live_groups_of(uint64_t needs);
/* Returns the parts that records keep for these needs. Bits 1 << PART_x. */
unsigned int live_parts_of(uint64_t needs);

#endif
