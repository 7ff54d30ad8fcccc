/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Waits until all BPF programs that run now have ended, so that what they write is at rest. They
 * run inside of RCU's read side, and the kernel has a call that waits for that: membarrier(2), as
 * MEMBARRIER_CMD_GLOBAL is a synchronize_rcu() (4.3; kernel/sched/membarrier.c). Hosts with
 * nohz_full refuse it: there a fixed time is waited.
 */
#ifndef TSNAP_MAPS_PROGRAMS_WAIT_H
#define TSNAP_MAPS_PROGRAMS_WAIT_H

#include <stdbool.h>

struct programs_wait;

/* Waits for some ten milliseconds, more on a busy host. */
void programs_wait(void);
/* Begins programs_wait() in a thread of its own. NULL: no thread could be made. */
struct programs_wait *programs_wait_start(void);
bool programs_wait_over(const struct programs_wait *wait);
/* Waits until wait is over, and frees it. NULL: waits here and now. */
void programs_wait_end(struct programs_wait *wait);

#endif
