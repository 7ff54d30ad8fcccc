/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Linked into a program of chains.c, moves its code to anonymous memory before main(), as programs
 * do for huge pages. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void move(char *from, size_t bytes)
{
	char *to = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (to == MAP_FAILED)
		abort();
	memcpy(to, from, bytes);
	if (mprotect(to, bytes, PROT_READ | PROT_EXEC) ||
	    mremap(to, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, from) == MAP_FAILED)
		abort();
}

__attribute__((constructor)) static void code_move(void)
{
	const uintptr_t here = (uintptr_t)code_move;
	uintptr_t start = 0, end = 0;
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[4096];

	while (maps && (here < start || here >= end) && fgets(line, sizeof(line), maps))
		if (sscanf(line, "%lx-%lx", &start, &end) != 2)
			abort();
	if (!maps || here < start || here >= end)
		abort();
	fclose(maps);
	move((char *)start, end - start);
}
