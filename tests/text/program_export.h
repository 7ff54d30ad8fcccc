/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Writes compiled programs into a file for program_loader. */
#ifndef TSNAP_TESTS_PROGRAM_EXPORT_H
#define TSNAP_TESTS_PROGRAM_EXPORT_H

#include "kernel/probe_table.h"

#include <linux/bpf.h>
#include <stddef.h>
#include <stdio.h>

/* Writes a program. name: of the probe and its plan; since: the oldest kernel that may get the
 * program. Programs whose arguments have types are left out: they need the BTF of the kernel that
 * loads them. The instructions refer to maps by descriptors that must be open. 0 or -errno. */
int program_export(FILE *to, const char *name, const struct probe_row *row, uint32_t since,
		   const struct bpf_insn *instructions, size_t count);

#endif
