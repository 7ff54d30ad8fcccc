/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The system calls of a process in the sandbox. */
#ifndef TSNAP_SANDBOX_CALL_TABLE_H
#define TSNAP_SANDBOX_CALL_TABLE_H

#include <stddef.h>
#include <stdint.h>

#define CALL_ARGUMENTS 2

/* Part of an argument that is compared: the kernel takes an int, and ignores the bits above it. */
struct call_argument {
	uint32_t mask; /* 0: any value */
	unsigned int number;
	uint32_t value;
};

struct call_row {
	const char *names; /* libseccomp's names, with spaces between; calls that it lacks are
			      refused */
	unsigned int uses; /* enum sandbox_use; 0: always */
	struct call_argument arguments[CALL_ARGUMENTS];
};

extern const struct call_row call_rows[];
extern const size_t call_row_count;

/* Returns the number of a call that is newer than the libseccomp of some distributions. -1: it is
 * not known, or not the same on all architectures (as those from 424 on are). */
int call_number(const char *name);

#endif
