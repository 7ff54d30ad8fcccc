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

/* Symbols by which runtimes are known: an interpreter of Python; HotSpot, which runs Java, with two
 * tables and where their columns are. */
/* clang-format off */
#define PYTHON_EXPORTS(EXPORT) \
	EXPORT(MODULE_PYTHON_RUNTIME, "_PyRuntime") \
	EXPORT(MODULE_PYTHON_VERSION, "Py_Version") /* Python 3.11 and later */ \
	EXPORT(MODULE_PYTHON_CODE, "PyCode_Type") \
	EXPORT(MODULE_PYTHON_STRING, "PyUnicode_Type") \
	EXPORT(MODULE_PYTHON_COROUTINE, "PyCoro_Type") \
	EXPORT(MODULE_PYTHON_GENERATOR, "PyGen_Type") \
	EXPORT(MODULE_PYTHON_ASYNC_GENERATOR, "PyAsyncGen_Type")
#define JAVA_EXPORTS(EXPORT) \
	EXPORT(MODULE_JAVA_FIELDS, "gHotSpotVMStructs") \
	EXPORT(MODULE_JAVA_FIELD_STRIDE, "gHotSpotVMStructEntryArrayStride") \
	EXPORT(MODULE_JAVA_FIELD_CLASS, "gHotSpotVMStructEntryTypeNameOffset") \
	EXPORT(MODULE_JAVA_FIELD_NAME, "gHotSpotVMStructEntryFieldNameOffset") \
	EXPORT(MODULE_JAVA_FIELD_TYPE, "gHotSpotVMStructEntryTypeStringOffset") \
	EXPORT(MODULE_JAVA_FIELD_OFFSET, "gHotSpotVMStructEntryOffsetOffset") \
	EXPORT(MODULE_JAVA_FIELD_ADDRESS, "gHotSpotVMStructEntryAddressOffset") \
	EXPORT(MODULE_JAVA_TYPES, "gHotSpotVMTypes") \
	EXPORT(MODULE_JAVA_TYPE_STRIDE, "gHotSpotVMTypeEntryArrayStride") \
	EXPORT(MODULE_JAVA_TYPE_NAME, "gHotSpotVMTypeEntryTypeNameOffset") \
	EXPORT(MODULE_JAVA_TYPE_BYTES, "gHotSpotVMTypeEntrySizeOffset")
/* Name of the member of struct runtime_exports; its symbols; their number; whether some of them are
 * of no use without the others. */
#define RUNTIME_EXPORTS(RUNTIME) \
	RUNTIME(python, PYTHON_EXPORTS, MODULE_PYTHON_EXPORTS, false) \
	RUNTIME(java, JAVA_EXPORTS, MODULE_JAVA_EXPORTS, true)
/* clang-format on */

#define EXPORT_ID(id, name) id,
enum module_python { PYTHON_EXPORTS(EXPORT_ID) MODULE_PYTHON_EXPORTS };
enum module_java { JAVA_EXPORTS(EXPORT_ID) MODULE_JAVA_EXPORTS };

/* Addresses as the file has them; 0: it exports no such name. */
#define EXPORT_ADDRESSES(member, exports, count, whole) uint64_t member[count];
struct runtime_exports {
	RUNTIME_EXPORTS(EXPORT_ADDRESSES)
};

void runtime_exports_read(const struct elf_file *elf, struct runtime_exports *to);

#endif
