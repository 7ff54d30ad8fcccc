/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Arguments of USDT probes (statically defined tracepoints of user programs): the note of a probe
 * says where each is, in the words of the assembler.
 *
 *   argument = [ "-" ] BYTES "@" operand          "-": signed; BYTES: 1, 2, 4 or 8
 *   x86-64     %rdi   $-3   8(%rsp)   -24(%rbp,%rax,4)   name+8(%rip)
 *   arm64      x0   w1   sp   -3   [sp, 8]   [x0, x1, lsl 3]
 *
 * https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation
 */
#ifndef TSNAP_BASE_USDT_OPERAND_H
#define TSNAP_BASE_USDT_OPERAND_H

#include <stdbool.h>
#include <stdint.h>

#define USDT_ARGUMENTS_MAX 12 /* of a probe: what <sys/sdt.h> offers */
#define USDT_SYMBOL_SIZE 64

enum usdt_place {
	USDT_UNKNOWN, /* an operand that is not read */
	USDT_CONSTANT,
	USDT_REGISTER,
	USDT_MEMORY,
};

/* Numbers of registers: those of DWARF for the machine, as far as they are general ones. */
#define USDT_REGISTERS 33
#define USDT_NO_REGISTER 255
#define USDT_X86_IP 16
#define USDT_ARM_SP 31
#define USDT_ARM_PC 32

struct usdt_operand {
	uint8_t place; /* enum usdt_place */
	uint8_t bytes; /* 1, 2, 4 or 8 */
	bool is_signed;
	uint8_t dropped;     /* lowest bits of the register that are no part of it (%ah) */
	uint8_t base, index; /* USDT_NO_REGISTER: none */
	uint8_t scale;	     /* the index is shifted to the left by so many bits */
	uint8_t unused;	     /* no holes: operands are compared as bytes */
	int64_t offset;	     /* the constant, or what is added to the address */
};

/* Parses the next argument of a machine (EM_X86_64, EM_AARCH64); *at: behind it, and behind the
 * spaces that follow. An operand that is not known becomes USDT_UNKNOWN. symbol: the variable whose
 * distance from the instruction is to be added to the offset; "": none. False: there are no more
 * arguments. */
bool usdt_operand_next(const char **at, uint16_t machine, struct usdt_operand *operand,
		       char symbol[USDT_SYMBOL_SIZE]);

/* True if all members are in their bounds: for operands that another process parsed. */
bool usdt_operand_is_valid(const struct usdt_operand *operand);

#endif
