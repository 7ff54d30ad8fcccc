/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A file of compiled BPF programs: text_check --export writes it, program_loader has a kernel's
 * verifier judge each of them. It lets programs that were compiled here be loaded by an old kernel
 * in an emulated machine, without a compiler there. Both run on the same kind of CPU; the file is
 * not kept.
 *
 * The file is a sequence of struct program_entry, each followed by its maps and its instructions.
 */
#ifndef TSNAP_TESTS_PROGRAM_FILE_H
#define TSNAP_TESTS_PROGRAM_FILE_H

#include <linux/bpf.h>
#include <stdint.h>

#define PROGRAM_NAME_SIZE 192
#define PROGRAM_MAPS_MAX 32

/* Arguments of BPF_MAP_CREATE. */
struct program_map {
	uint32_t type, key_bytes, value_bytes, entries, flags;
};

struct program_entry {
	char name[PROGRAM_NAME_SIZE]; /* probe and plan, as text_check prints them */
	uint32_t type;		      /* enum bpf_prog_type */
	uint32_t since;		      /* oldest kernel that may get it: major << 8 | minor */
	uint32_t map_count;
	/* number of instructions, of which BPF_PSEUDO_MAP_FD ones hold an index of the program's
	 * maps */
	uint32_t instruction_count;
};

#endif
