/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Demands of compiled BPF instructions on a kernel, found by reading the instructions. */
#ifndef TSNAP_TESTS_INSTRUCTIONS_H
#define TSNAP_TESTS_INSTRUCTIONS_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NEEDS_HELPERS_MAX 32
#define NEEDS_READS_MAX 256

struct instruction_needs {
	size_t count;
	int stack_bytes;   /* deepest use of the frame */
	bool goes_back;	   /* has a backward jump */
	const char *newer; /* name of an instruction that 4.9 lacks, or NULL */
	int helpers[NEEDS_HELPERS_MAX];
	size_t helper_count;
	/* Offsets of reads: constants added to pointers that were read through, by a probe_read,
	 * but not of the context, or by a load from what the context holds. */
	int64_t reads[NEEDS_READS_MAX];
	size_t read_count;
	bool size_varies; /* reads memory of a size that is not constant: since 4.11 */
	bool size_zero;	  /* reads a size that may be 0 as far as the verifier knows: since 4.16 */
};

/* Goes straight through the text: values are not followed over jumps, which compiled reads of
 * struct members never need. */
void instruction_needs_find(const struct bpf_insn *insns, size_t count,
			    struct instruction_needs *needs);

#endif
