/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Properties of the CPU that a walk needs, one row for each kind of code that may run here.
 * Register numbers are DWARF's: System V ABI, AMD64 figure 3.36, i386 table 2.14; AADWARF64 table
 * 4.1. */
#ifndef TSNAP_UNWIND_MACHINE_H
#define TSNAP_UNWIND_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#define MACHINE_SAVED_MAX 12

struct machine {
	uint16_t elf; /* e_machine */
	uint8_t word_bytes;
	uint8_t sp, fp, ra;
	bool ra_in_register;   /* a call leaves its return address in ra, and not on the stack */
	uint64_t address_mask; /* bits of a return address that are no signature */
	uint8_t saved_count;
	uint8_t saved[MACHINE_SAVED_MAX]; /* registers that a function gives back, without sp */
};

/* Returns this machine, or with compat the one of its 32-bit code. NULL: it runs none. */
const struct machine *machine_of(bool compat);
/* Returns the machine of an ELF file's e_machine, or NULL. */
const struct machine *machine_of_elf(uint16_t elf);

#endif
