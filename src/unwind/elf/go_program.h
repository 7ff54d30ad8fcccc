/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads from the file of a Go program which version its runtime is, and where the runtime keeps its
 * list of goroutines. src/runtime/proc.go and runtime2.go, src/debug/buildinfo/buildinfo.go.
 * Everything in it is hostile. 64-bit files only. */
#ifndef TSNAP_UNWIND_ELF_GO_PROGRAM_H
#define TSNAP_UNWIND_ELF_GO_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/elf/elf_file.h"

#define GO_VERSION_SIZE 64

/* Addresses as the file has them; 0: it has no symbol of that name. */
struct go_program {
	bool has_symbols;
	uint64_t list;			/* runtime.allgptr: pointer to an array of pointers */
	uint64_t count;			/* runtime.allglen: their number */
	uint64_t reasons, reason_count; /* runtime.waitReasonStrings: an array of strings */
	char version[GO_VERSION_SIZE];	/* "go1.19.8"; empty: not known */
};

/* Returns 0, or -ENOENT: the file is no program of Go. */
int go_program_read(struct go_program *program, const struct elf_file *elf);

#endif
