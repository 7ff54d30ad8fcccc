/* SPDX-License-Identifier: GPL-2.0-or-later */
#ifndef TSNAP_WAITS_ELSEWHERE_H
#define TSNAP_WAITS_ELSEWHERE_H

#include "waits/waits.h"

/* Describes what the thread waits for if that is not what its system call waits for: the thaw of
 * its frozen cgroup, its tracer, SIGCONT, a page that userfaultfd is to give. False: none of these.
 */
bool elsewhere_describe(struct wait *wait, enum thread_state_kind state);

#endif
