/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Requests to a parser for the headers of a file with code, and for what it exports. Where there is
 * no parser any more, all of the file is taken for code of this machine at its own offsets, and it
 * exports nothing: no process with privileges interprets anything of it. */
#ifndef TSNAP_UNWIND_MODULE_READ_H
#define TSNAP_UNWIND_MODULE_READ_H

#include <stdbool.h>

#include "unwind/elf/elf_file.h"
#include "unwind/elf/runtime_exports.h"

struct file_returns_answer;
struct parser;

/* State of reading a file, zeroed at first. */
struct module_read {
	unsigned int ended; /* parsers that ended over the file */
	bool has_exports;
	struct runtime_exports exports;
};

/* Fills all of elf but its descriptor or image, and its bytes. parser: may be NULL. Returns 0;
 * -EAGAIN: no parser could read it now; or -ENOEXEC: it is no ELF file, or one that ends
 * parsers. */
int module_read_head(struct module_read *read, struct parser *parser, struct elf_file *elf);

/* Returns what the file exports, requested once; all 0 as long as no parser could read it, and for
 * an image. */
const struct runtime_exports *module_read_exports(struct module_read *read, struct parser *parser,
						  const struct elf_file *elf);

/* Requests where x86-64 code of the file returns, from an address on (file_returns_request()).
 * parser: may be NULL. Returns 0; -EAGAIN: no parser could read it now; or another -errno: none
 * will. */
int module_read_returns(struct module_read *read, struct parser *parser, const struct elf_file *elf,
			uint64_t address, bool exact, struct file_returns_answer *answer);

#endif
