/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Validates a layout on the running kernel: a program reads all fields at a switch of this very
 * thread, and each is compared with what the kernel's own calls return. */
#ifndef TSNAP_KERNEL_LAYOUT_VALIDATE_H
#define TSNAP_KERNEL_LAYOUT_VALIDATE_H

#include <stdbool.h>
#include <stddef.h>

#include "kernel/field_table.h"

struct layout_validation {
	size_t field; /* row of the field table that is wrong, if refuted */
	char why[96]; /* reason why validation was not possible */
};

/* Validates a layout. parent_name: name of the thread that forked this process, or "". 0:
 * validated. 1: refuted. -errno: not possible (perf events are forbidden). The list in
 * tests/live/case_types.py has what can't be validated, with the reasons. */
int layout_validate(const struct field_layout *layout, const char *parent_name,
		    struct layout_validation *proof);

/* True if a field of the table is validated. */
bool layout_validate_knows(size_t field);

#endif
