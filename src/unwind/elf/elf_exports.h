/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Finds symbols that a file exports: its .dynsym, which no strip takes away, by .gnu.hash; among
 * them those that runtimes of languages export for debuggers, by which their files are known. */
#ifndef TSNAP_UNWIND_ELF_ELF_EXPORTS_H
#define TSNAP_UNWIND_ELF_ELF_EXPORTS_H

#include <stdint.h>

#include "unwind/elf/elf_file.h"

/* Fills addresses, as the file has them; 0 where it exports no such name. Returns how many were
 * found. 64-bit files only. */
unsigned int elf_exports(const struct elf_file *elf, const char *const *names, uint64_t *addresses,
			 unsigned int count);

/* Symbols that an interpreter of Python exports. */
enum module_python {
	MODULE_PYTHON_RUNTIME,
	MODULE_PYTHON_VERSION,
	MODULE_PYTHON_CODE,
	MODULE_PYTHON_STRING,
	MODULE_PYTHON_EXPORTS,
};

/* Symbols that HotSpot, which runs Java, exports: two tables and where their columns are. */
enum module_java {
	MODULE_JAVA_FIELDS,
	MODULE_JAVA_FIELD_STRIDE,
	MODULE_JAVA_FIELD_CLASS,
	MODULE_JAVA_FIELD_NAME,
	MODULE_JAVA_FIELD_TYPE,
	MODULE_JAVA_FIELD_OFFSET,
	MODULE_JAVA_FIELD_ADDRESS,
	MODULE_JAVA_TYPES,
	MODULE_JAVA_TYPE_STRIDE,
	MODULE_JAVA_TYPE_NAME,
	MODULE_JAVA_TYPE_BYTES,
	MODULE_JAVA_EXPORTS,
};

/* Addresses as the file has them; 0: it exports no such name. */
struct runtime_exports {
	uint64_t python[MODULE_PYTHON_EXPORTS];
	uint64_t java[MODULE_JAVA_EXPORTS]; /* all, or none */
};

void runtime_exports_read(const struct elf_file *elf, struct runtime_exports *exports);

#endif
