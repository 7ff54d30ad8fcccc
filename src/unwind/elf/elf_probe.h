/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What a file says of a function that is to be probed, and of its USDT probes, whose notes are in
 * the section .note.stapsdt:
 * https://sourceware.org/systemtap/wiki/UserSpaceProbeImplementation
 */
#ifndef TSNAP_UNWIND_ELF_ELF_PROBE_H
#define TSNAP_UNWIND_ELF_ELF_PROBE_H

#include <stdint.h>

#include "base/usdt_operand.h"
#include "unwind/elf/elf_file.h"

#define PROBE_NAME_BYTES 128
#define PROBE_BEGIN_BYTES 2
#define USDT_SITES_MAX 64

struct elf_function {
	uint8_t found, in_code; /* bool; in_code: offset has it */
	uint8_t indirect;	/* it only chooses another one at the start (IFUNC) */
	uint8_t go, throws;	/* the file is a program of Go; it throws or passes on exceptions */
	uint8_t any;		/* the file has names of functions */
	uint8_t narrow;		/* the file is a 32-bit one */
	uint8_t begin[PROBE_BEGIN_BYTES]; /* of its code; 0 where the file has less */
	uint64_t offset;		  /* in the file */
	char nearest[PROBE_NAME_BYTES];	  /* if it was not found: the name most like it, or "" */
};

/* Fills what is known of the function of that name. */
void elf_function_find(const struct elf_file *elf, const char *name, struct elf_function *function);

struct usdt_site {
	uint64_t offset;    /* of the instruction, in the file */
	uint64_t semaphore; /* offset in the file of the word that counts who probes it; 0: none */
	uint32_t argument_count; /* all of them; the first ones are there */
	struct usdt_operand arguments[USDT_ARGUMENTS_MAX];
};

/* Texts are cut at their ends; "": there is none. */
struct elf_usdt {
	uint8_t any, narrow; /* the file has such probes; it is a 32-bit one */
	uint8_t more;	     /* there are more sites than fit */
	uint8_t misplaced; /* a site is not in the file's code, or its semaphore not in its data */
	uint32_t site_count;					  /* 0: no probe has the name */
	char provider[PROBE_NAME_BYTES], other[PROBE_NAME_BYTES]; /* other: of the name, too */
	char arguments[PROBE_NAME_BYTES]; /* of the first site, as the note has them */
	char nearest[PROBE_NAME_BYTES];	  /* if none was found: the name most like it */
	struct usdt_site sites[USDT_SITES_MAX];
};

/* Fills where the probe of that name is. provider: "" for any; sites are those of one. */
void elf_usdt_find(const struct elf_file *elf, const char *provider, const char *name,
		   struct elf_usdt *usdt);

#endif
