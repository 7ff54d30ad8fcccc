/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions for targets whose input is the memory of a process: this process' own, at an address
 * that does not change. */
#ifndef TSNAP_TESTS_FUZZ_MEMORY_H
#define TSNAP_TESTS_FUZZ_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

/* Maps memory at that address; NULL: the address is in use. */
static inline char *fuzz_memory_map(uintptr_t base, size_t bytes)
{
	char *wanted, *mapped;

	memcpy(&wanted, &base, sizeof(wanted));
	mapped = mmap(wanted, bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	return mapped == wanted ? mapped : NULL;
}

#endif
