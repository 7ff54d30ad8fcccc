/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Location of a thread's saved registers on its kernel stack, found by sleeping in a known system
 * call and looking where its own arguments are. The size of the stack and the padding at its end
 * differ by configuration (KASAN, FRED).
 */
#ifndef TSNAP_KERNEL_CALIBRATE_H
#define TSNAP_KERNEL_CALIBRATE_H

#include <stdint.h>

#include "kernel/field_table.h"

/* Finds the bytes from task->stack to the saved registers, *offset, and which of them native calls
 * keep (enum registers_kept). 0; -ENOENT where no candidate fits; another -errno where trying is
 * not possible (no perf software events). */
int calibrate_registers(const struct field_layout *layout, uint32_t *offset, unsigned int *kept);

#endif
