/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Rules to come from a frame to its caller's, at one place of the code: a row of what DWARF calls
 * the call frame information, made small for a cache. */
#ifndef TSNAP_UNWIND_FRAME_ROW_H
#define TSNAP_UNWIND_FRAME_ROW_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/machine.h"

/* CFA: the caller's sp, as a rule. */
enum frame_rule_kind {
	RULE_UNDEFINED,
	RULE_SAME,
	RULE_AT_CFA,	 /* saved at CFA + offset */
	RULE_CFA,	 /* is CFA + offset */
	RULE_REGISTER,	 /* is in another register, + offset */
	RULE_AT,	 /* saved where an expression tells */
	RULE_EXPRESSION, /* is what it tells */
};

struct frame_rule {
	uint8_t kind;
	uint8_t number; /* number of the register */
	uint16_t count; /* operations of the expression */
	int32_t offset; /* or index of the expression in the table's operations */
};

/* Whether a walk goes past a function that has no row. */
enum stack_end {
	STACK_GOES_ON,
	STACK_ENDS_IF_LOST, /* it is the outermost one if its frame can't be left */
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
	bool looked;	     /* the table was asked */
	bool found;	     /* the table tells of this place */
	bool signal;	     /* the caller was interrupted there, it did not call */
	bool followed;	     /* the table does not, but the code does (x86_return.h) */
	uint8_t tries;	     /* to follow it */
	uint8_t end;	     /* enum stack_end */
	uint8_t return_kind; /* enum return_kind of the next byte's address */
	struct frame_rule cfa, ra;
	struct frame_rule saved[MACHINE_SAVED_MAX]; /* in the order of machine.saved */
};

/* An operation of a DWARF expression, DW_OP_*. */
struct frame_operation {
	uint8_t atom;
	uint64_t number, number2;
	uint64_t offset; /* byte offset in the expression, to which branches go */
};

#endif
