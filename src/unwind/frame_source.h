/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rows of a file's unwind table: rules that lead from a frame to its caller's, at one address of
 * the code; a row of DWARF's call frame information, made small for a cache. libdw makes them, in a
 * parser only (file_request.c). A build without libdw has none. */
#ifndef TSNAP_UNWIND_FRAME_SOURCE_H
#define TSNAP_UNWIND_FRAME_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/elf/elf_file.h"
#include "unwind/machine.h"

#define ROW_OPERATIONS_MAX 1024 /* operations of all expressions of a row */

/* Limits of the programs in unwind tables, which say where a function's registers are saved. */
#define FRAME_PROGRAM_REGISTERS 128u /* arm64's vector registers end at 127 */
#define FRAME_PROGRAM_STATES 16u     /* states remembered at once; those programs remember 1 */
#define FRAME_PROGRAM_BYTES 65536u   /* the largest of 1700 programs and libraries has 22171 */
#define FRAME_PROGRAM_EXPRESSION_BYTES 1024u

/* Kinds of rules. CFA: the caller's sp, usually. */
enum frame_rule_kind {
	RULE_UNDEFINED,
	RULE_SAME,
	RULE_AT_CFA,	 /* saved at CFA + offset */
	RULE_CFA,	 /* is CFA + offset */
	RULE_REGISTER,	 /* is in another register, + offset */
	RULE_AT,	 /* saved at the address that an expression gives */
	RULE_EXPRESSION, /* is the value that an expression gives */
};

struct frame_rule {
	uint8_t kind;
	uint8_t number; /* number of the register */
	uint16_t count; /* operations of the expression */
	int32_t offset; /* offset, or index of the expression in the table's operations */
};

/* Whether a walk goes past a function that has no row. */
enum stack_end {
	STACK_GOES_ON,
	STACK_ENDS_IF_LOST, /* the function is the outermost one if its frame can't be left */
	STACK_ENDS,
};

/* Kinds of code that may return to an address. */
enum return_kind {
	RETURN_UNKNOWN,
	RETURN_NONE,
	RETURN_OF_CALL,
	RETURN_OF_SIGNAL,
};

struct frame_row {
	bool looked;	     /* the row was looked up in the table */
	bool found;	     /* the table has a row for this address */
	bool signal;	     /* the caller was interrupted there, it did not call */
	bool followed;	     /* the table has no row, but the code gave one (x86_return.h) */
	uint8_t tries;	     /* tries to follow the code */
	uint8_t end;	     /* enum stack_end */
	uint8_t return_kind; /* enum return_kind of the next byte's address */
	uint64_t begin;	     /* address of the function that the row is of */
	struct frame_rule cfa, ra;
	struct frame_rule saved[MACHINE_SAVED_MAX]; /* rules in the order of machine.saved */
};

/* An operation of a DWARF expression, DW_OP_*. */
struct frame_operation {
	uint8_t atom;
	uint64_t number, number2;
	uint64_t offset; /* byte offset in the expression, to which branches go */
};

/* Operations of rows' expressions; a rule's offset is that of its first one. */
struct frame_operations {
	struct frame_operation all[ROW_OPERATIONS_MAX];
	size_t count;
};

struct frame_source;

/* Reads a file's tables; what elf reads from is not needed afterwards. NULL: there are none. */
struct frame_source *frame_source_open(const struct elf_file *elf);
void frame_source_close(struct frame_source *source); /* source may be NULL */
size_t frame_source_bytes(const struct frame_source *source);
/* Fills *row, whose expressions are added to operations. Returns 0, or -ENOENT where the table has
 * no row. */
int frame_source_row(struct frame_source *source, const struct machine *machine,
		     struct frame_operations *operations, uint64_t address, struct frame_row *row);

/* True if a program of call frame instructions is whole and within the limits. */
bool frame_program_fits(const uint8_t *at, const uint8_t *end);

#endif
