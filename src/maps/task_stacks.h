/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Addresses of the kernel stacks of all threads that there are now, from a BPF iterator (5.8).
 * Probes learn them only when a thread is switched.
 */
#ifndef TSNAP_MAPS_TASK_STACKS_H
#define TSNAP_MAPS_TASK_STACKS_H

#include "base/index.h"
#include "kernel/field_table.h"

/* Fills stacks, an index from the kernel's own tid to the thread's task->stack. 0 or -errno. */
int task_stacks_read(const struct field_layout *layout, struct index *stacks);

#endif
