/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/elf/runtime_exports.h"
#include "unwind/elf/elf_exports.h"

#include <string.h>

static const char *const python_names[MODULE_PYTHON_EXPORTS] = {
	[MODULE_PYTHON_RUNTIME] = "_PyRuntime",
	[MODULE_PYTHON_VERSION] = "Py_Version", /* Python 3.11 and later */
	[MODULE_PYTHON_CODE] = "PyCode_Type",
	[MODULE_PYTHON_STRING] = "PyUnicode_Type",
};

static const char *const java_names[MODULE_JAVA_EXPORTS] = {
	[MODULE_JAVA_FIELDS] = "gHotSpotVMStructs",
	[MODULE_JAVA_FIELD_STRIDE] = "gHotSpotVMStructEntryArrayStride",
	[MODULE_JAVA_FIELD_CLASS] = "gHotSpotVMStructEntryTypeNameOffset",
	[MODULE_JAVA_FIELD_NAME] = "gHotSpotVMStructEntryFieldNameOffset",
	[MODULE_JAVA_FIELD_TYPE] = "gHotSpotVMStructEntryTypeStringOffset",
	[MODULE_JAVA_FIELD_OFFSET] = "gHotSpotVMStructEntryOffsetOffset",
	[MODULE_JAVA_FIELD_ADDRESS] = "gHotSpotVMStructEntryAddressOffset",
	[MODULE_JAVA_TYPES] = "gHotSpotVMTypes",
	[MODULE_JAVA_TYPE_STRIDE] = "gHotSpotVMTypeEntryArrayStride",
	[MODULE_JAVA_TYPE_NAME] = "gHotSpotVMTypeEntryTypeNameOffset",
	[MODULE_JAVA_TYPE_BYTES] = "gHotSpotVMTypeEntrySizeOffset",
};

void runtime_exports_read(const struct elf_file *elf, struct runtime_exports *exports)
{
	elf_exports(elf, python_names, exports->python, MODULE_PYTHON_EXPORTS);
	if (elf_exports(elf, java_names, exports->java, MODULE_JAVA_EXPORTS) < MODULE_JAVA_EXPORTS)
		memset(exports->java, 0, sizeof(exports->java));
}
