/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Limits of a compiled program: those of the oldest kernel that may get it, offsets of its layout,
 * and the budget.
 */
#ifndef TSNAP_TESTS_PROGRAM_CHECK_H
#define TSNAP_TESTS_PROGRAM_CHECK_H

#include "kernel/field_table.h"

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLAN_NAME_SIZE 96

/* Fields that some program was seen to read. */
struct fields_seen {
	bool field[FIELD_MAX];
};

struct judged_program {
	const char *name; /* probe, plan and knobs */
	const char *plan; /* probe and plan, with or without --trace: a line of the budget */
	const struct bpf_insn *insns;
	size_t count;
	uint32_t release; /* oldest kernel that may get it: FEATURE_SINCE() */
};

/* Compares the largest program of each probe and plan that was checked with the file's counts, if
 * these are for this libbcc and machine: other compilers give other counts. */
void budget_check(const char *path, const char *machine);

void program_check(const struct judged_program *program, const struct field_layout *layout,
		   struct fields_seen *seen);

/* Checks a program with one of each error: all are found. */
void program_check_itself(void);

#endif
