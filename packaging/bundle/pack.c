/* SPDX-License-Identifier: GPL-2.0-or-later */
/* bundle-pack PROGRAM PACKED: packs a bundle, see pack.h. PROGRAM was linked with compiler.ld: its
 * last two segments are .bcc_rodata and .bcc_text. A program of the build.
 */
#include "pack.h"

#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <zstd.h>

#define LEVEL 15 /* 19 saves 5 % more, in ten times the time */

static void die(const char *what, const char *why)
{
	fprintf(stderr, "bundle-pack: %s: %s\n", what, why);
	exit(1);
}

static char *file_read(const char *path, size_t *bytes)
{
	FILE *file = fopen(path, "rb");
	struct stat stat;
	char *all;

	if (!file || fstat(fileno(file), &stat))
		die(path, strerror(errno));
	*bytes = (size_t)stat.st_size;
	all = malloc(*bytes);
	if (!all || fread(all, 1, *bytes, file) != *bytes)
		die(path, "can't be read");
	fclose(file);
	return all;
}

/* The address of the section with the name; 0: there is none. */
static uint64_t section_find(const char *all, const char *name)
{
	const Elf64_Ehdr *head = (const void *)all;
	const Elf64_Shdr *sections = (const void *)(all + head->e_shoff);
	const char *names = all + sections[head->e_shstrndx].sh_offset;

	for (int i = 0; i < head->e_shnum; i++)
		if (!strcmp(names + sections[i].sh_name, name))
			return sections[i].sh_addr;
	return 0;
}

/* Empties the segments with the compiler, forgets the table of sections, and returns the first
 * of these segments as it was; *bytes gets the size of both. */
static Elf64_Phdr segments_empty(char *all, size_t *bytes)
{
	uint64_t rodata = section_find(all, ".bcc_rodata"), text = section_find(all, ".bcc_text");
	Elf64_Ehdr *head = (void *)all;
	Elf64_Phdr *segments = (void *)(all + head->e_phoff), *first = NULL, *second = NULL, old;

	for (int i = 0; i < head->e_phnum; i++) {
		if (segments[i].p_type != PT_LOAD)
			continue;
		if (second)
			die("the program", "its compiler does not come last");
		if (rodata && segments[i].p_vaddr == rodata)
			first = &segments[i];
		else if (first && segments[i].p_vaddr == text)
			second = &segments[i];
		else if (first)
			die("the program", "its compiler's segments are not side by side");
	}
	if (!second || second->p_offset - first->p_offset != second->p_vaddr - first->p_vaddr)
		die("the program", "it was not linked with compiler.ld");
	old = *first;
	*bytes = second->p_vaddr + second->p_memsz - first->p_vaddr;
	first->p_filesz = second->p_filesz = 0;
	second->p_offset = first->p_offset;
	second->p_flags = PF_R; /* empty pages that can be written to are not to be executed */
	head->e_shoff = 0;
	head->e_shnum = head->e_shstrndx = 0;
	return old;
}

int main(int argc, char **argv)
{
	struct pack_end end = {.magic = PACK_MAGIC};
	size_t all_bytes, bytes, bound;
	Elf64_Phdr segment;
	char *all, *packed;
	FILE *file;

	if (argc != 3)
		die("usage", "bundle-pack PROGRAM PACKED");
	all = file_read(argv[1], &all_bytes);
	segment = segments_empty(all, &bytes);
	bound = ZSTD_compressBound(bytes);
	packed = malloc(bound);
	if (!packed || segment.p_offset + bytes > all_bytes)
		die(argv[1], "is cut off");
	end.offset = segment.p_offset;
	end.packed_bytes = ZSTD_compress(packed, bound, all + segment.p_offset, bytes, LEVEL);
	if (ZSTD_isError(end.packed_bytes))
		die("zstd", ZSTD_getErrorName(end.packed_bytes));
	file = fopen(argv[2], "wb");
	if (!file || fwrite(all, 1, segment.p_offset, file) != segment.p_offset ||
	    fwrite(packed, 1, end.packed_bytes, file) != end.packed_bytes ||
	    fwrite(&end, sizeof(end), 1, file) != 1 || fchmod(fileno(file), 0755) || fclose(file))
		die(argv[2], strerror(errno));
	return 0;
}
