/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Registers of user code, by their DWARF numbers on this machine: the kernel folder decodes them,
 * and a stack walk begins with them. Return addresses that the kernel keeps.
 */
#ifndef TSNAP_BASE_USER_REGISTERS_H
#define TSNAP_BASE_USER_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>

#define USER_REGISTER_COUNT 32

struct user_registers {
	uint64_t ip, sp;
	uint64_t word[USER_REGISTER_COUNT]; /* sp is not among them */
	uint32_t known;			    /* a bit for each known word */
	bool compat;			    /* 32-bit code */
};

/* A return address on the stack that a uretprobe of the kernel has replaced: the stack pointer at
 * the begin of the function, and the address. */
struct user_return {
	uint64_t sp, address;
};

static inline void user_register_set(struct user_registers *registers, int number, uint64_t value)
{
	registers->word[number] = value;
	registers->known |= 1u << number;
}

static inline bool user_register_get(const struct user_registers *registers, int number,
				     uint64_t *value)
{
	*value = registers->word[number];
	return registers->known >> number & 1;
}

#endif
