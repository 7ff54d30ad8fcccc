/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of the kernel's functions by address, from /proc/kallsyms: modules and BPF programs, too,
 * as they were when it was read.
 */
#ifndef TSNAP_UNWIND_ELF_KERNEL_SYMBOLS_H
#define TSNAP_UNWIND_ELF_KERNEL_SYMBOLS_H

#include <stddef.h>
#include <stdint.h>

#define KERNEL_SYMBOLS_MAX (1u << 20)

struct kernel_symbol {
	uint64_t address;
	uint32_t name; /* offset in names */
};

/* Functions of the kernel. A zeroed struct is empty and valid. */
struct kernel_symbols {
	struct kernel_symbol *symbols; /* symbols in order of address */
	size_t count, capacity;
	char *names;
	size_t names_bytes, names_capacity;
	uint64_t sched_from, sched_to; /* range of functions that wait; 0: not known */
	uint64_t refused;	       /* functions beyond these limits */
	int err;		       /* what kernel_symbols_read() returned */
};

/* Reads all symbols, in some 50 ms. Returns 0, or -errno: -ENODATA where the kernel shows no
 * addresses (sysctl kernel.kptr_restrict). */
int kernel_symbols_read(struct kernel_symbols *symbols, const char *path);
void kernel_symbols_done(struct kernel_symbols *symbols);

/* Returns the function that the address is in, as %pB of the kernel's printk() has it; NULL: none
 * is known. */
const char *kernel_symbol_find(const struct kernel_symbols *symbols, uint64_t address);

#endif
