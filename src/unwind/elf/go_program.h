/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the file of a Go program has: which version its runtime is, where the runtime keeps its list
 * of goroutines (src/runtime/proc.go and runtime2.go, src/debug/buildinfo/buildinfo.go; 64-bit
 * files only), and the table of functions that the runtime has in every program (.gopclntab), also
 * in a stripped one: where functions begin, and their names. The table's layouts are those of Go
 * 1.2, 1.16, 1.18 and 1.20 (src/runtime/symtab.go, src/debug/gosym/pclntab.go); later versions have
 * the last of these so far, and newer ones (1.27; not 1.24) have the address where code begins
 * elsewhere, in struct moduledata. Everything in it is hostile.
 */
#ifndef TSNAP_UNWIND_ELF_GO_PROGRAM_H
#define TSNAP_UNWIND_ELF_GO_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/elf/elf_file.h"
#include "unwind/elf/symbol_table.h"

#define GO_VERSION_SIZE 64
#define GO_ENDS_MAX 32 /* functions at which stacks end: some have two addresses */

/* Addresses as the file has them; 0: it has no symbol of that name. */
struct go_program {
	bool has_symbols;
	/* runtime.allgptr: pointer to an array of pointers; before Go 1.17 the begin of
	 * runtime.allgs, a slice */
	uint64_t list;
	uint64_t count;			   /* runtime.allglen, or the slice's length */
	uint64_t memstats, memstats_bytes; /* runtime.memstats */
	uint64_t reasons, reason_count;	   /* runtime.waitReasonStrings: an array of strings */
	/* x86-64: where a struct g has the labels that runtime/pprof sets, by the code that sets
	 * them; 0: the program sets none, or it is not known */
	uint32_t labels_at;
	uint8_t labels_listed;	       /* bool: they are lists (unwind/go_labels.h) */
	int64_t g_at;		       /* from the thread pointer to the thread's g; x86-64 */
	char version[GO_VERSION_SIZE]; /* "go1.19.8"; empty: not known */
};

/* Returns 0, or -ENOENT: the file is no program of Go. */
int go_program_read(struct go_program *program, const struct elf_file *elf);

struct go_table {
	uint64_t offset, bytes;	   /* offset of the section in the file; its size */
	uint64_t names, records;   /* offsets in the file: of names, and what records count from */
	uint64_t steps;		   /* offset in the file, from which steps count in records */
	uint64_t functions, count; /* the list of functions: its offset in the file, its length */
	uint64_t text;		   /* address from which addresses in the list count */
	uint8_t quantum;	   /* distances between instructions are multiples of it */
	uint8_t word_bytes;	   /* 4 or 8 */
	uint8_t address_bytes;	   /* size of an address or record in the list */
	uint8_t start_bytes;	   /* size of a record's first member, before its name */
};

/* A function of the list. */
struct go_function {
	uint64_t from, to;
	uint32_t record;
};

/* A function at which a walk ends. */
struct go_end {
	uint64_t from, to;
	/* False: the function has switched stacks, and what its frame pointer leads to is not its
	 * caller. True: the function is the outermost one if its frame can't be left. */
	bool may_return;
};

/* Finds the table of a file. Returns 0, -ENOENT, or -EBADMSG where it has none of the known
 * layouts. */
int go_table_read(struct go_table *table, const struct elf_file *elf);
/* Adds the functions; the location of a symbol is that of the function's record. */
void go_table_symbols(const struct go_table *table, const struct elf_file *elf,
		      struct symbol_table *to, unsigned int source);
/* Fills name with that of the function of a record, cut at size - 1. False: there is none. */
bool go_table_name(const struct go_table *table, const struct elf_file *elf, uint32_t record,
		   char *name, size_t size);
/* Finds the function that the address is in. */
bool go_table_find(const struct go_table *table, const struct elf_file *elf, uint64_t address,
		   struct go_function *function);
/* Returns the distance of the stack pointer, at an instruction of the function, from where it was
 * when the function was entered. -1: it is not known. */
int32_t go_table_depth(const struct go_table *table, const struct elf_file *elf,
		       const struct go_function *function, uint64_t address);
/* Finds the functions that no walk goes past: those that begin a thread of Go's runtime, or switch
 * to its stack. Returns how many; 0 also where the table is larger than 64 MB. */
size_t go_table_ends(const struct go_table *table, const struct elf_file *elf,
		     struct go_end ends[GO_ENDS_MAX]);

#endif
