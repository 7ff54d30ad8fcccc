/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One x86-64 instruction: its length, and the fields that show what it does to the stack. Intel SDM
 * volume 2, chapter 2 and appendix A.
 */
#ifndef TSNAP_UNWIND_X86_INSTRUCTION_H
#define TSNAP_UNWIND_X86_INSTRUCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define X86_BYTES_MAX 15

struct x86_instruction {
	uint8_t bytes;	/* length */
	uint8_t opcode; /* last byte of the opcode */
	uint8_t map;	/* opcode's table: one byte (0), after 0f (1), 0f 38 (2), 0f 3a (3) */
	bool vector;	/* VEX: no instruction that touches the stack pointer */
	bool has_modrm;
	uint8_t mode, reg, rm; /* fields of ModRM, with the bits of REX; rm is not that of SIB */
	bool on_stack;	       /* the operand is at displacement(%rsp) */
	bool wide;	       /* REX.W */
	uint8_t low;	       /* register in the opcode itself, with REX.B */
	int32_t displacement, immediate;
};

/* Reads an instruction. False: compilers do not make it, or code has too few bytes of it. */
bool x86_instruction_read(const uint8_t *code, size_t count, struct x86_instruction *instruction);

#endif
