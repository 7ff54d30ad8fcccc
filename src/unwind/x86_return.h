/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds the returns of x86-64 code that has no unwind table, as musl's and Go's: its instructions
 * are followed from an address on, for what they do to the stack pointer and to the registers that
 * a function gives back. A parser does so. The thread's stack shows which of the returns is the
 * right one. */
#ifndef TSNAP_UNWIND_X86_RETURN_H
#define TSNAP_UNWIND_X86_RETURN_H

#include "unwind/frame_source.h"

#define X86_BYTES_MAX 15
#define X86_RETURNS_MAX 16
#define X86_SAVED 6 /* registers that a function gives back, in the order of machine.saved */

struct x86_return {
	int32_t offset; /* offset of the return address from the present value of base */
	uint8_t base;	/* register, by DWARF's number */
	uint8_t called; /* a function was called on the way, so that the stack was aligned there;
			 * after a call that does not return lies another function */
	struct frame_rule saved[X86_SAVED];
};

/* Fills returns in the order in which the ways to them are followed. Returns how many. address: of
 * the instruction, as the file has addresses. exact: the thread is there; else a call returns
 * there. */
size_t x86_returns_find(const struct elf_file *elf, uint64_t address, bool exact,
			struct x86_return returns[X86_RETURNS_MAX]);

/* Makes a row of a return, as a table would have it. False: x86_returns_find() makes no such
 * return. */
bool x86_return_row(const struct x86_return *found, struct frame_row *row);

/* One instruction: its length, and the fields that show what it does to the stack. Intel SDM volume
 * 2, chapter 2 and appendix A. */
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
