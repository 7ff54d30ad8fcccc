/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Validates a layout on the running kernel: a program reads all fields at a switch of this very
 * thread, and each is held against what the kernel's own calls tell of it. */
#ifndef TSNAP_KERNEL_LAYOUT_VALIDATE_H
#define TSNAP_KERNEL_LAYOUT_VALIDATE_H

#include <stdbool.h>
#include <stddef.h>

#include "kernel/field_table.h"

struct layout_validation {
	size_t field; /* refuted: a row of the field table that is wrong */
	char why[96]; /* can't be told: why not */
};

/* parent_name: what the thread that forked this process is called. 0: validated. 1: refuted.
 * -errno: can't be told (perf events are forbidden). What shows the same value here (exit_state and
 * another zero, the real parent and the tracing one) can't be told apart. */
int layout_validate(const struct field_layout *layout, const char *parent_name,
		    struct layout_validation *proof);

/* True if a field of the table is looked at. */
bool layout_validate_knows(size_t field);

#endif
