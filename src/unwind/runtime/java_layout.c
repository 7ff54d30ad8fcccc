/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/runtime/java_layout.h"

#include <string.h>

#define ROWS_MAX 16384 /* rows of a table; OpenJDK 17 has 801 */
#define STRIDE_MAX 256
#define OFFSET_MAX 65536
#define BLOCK_BYTES_MAX 64
#define CLASS_BYTES_MAX 4096 /* of the other classes whose size is wanted */
#define NAME_BYTES 40

struct field_row {
	const char *class, *name;
	enum java_field field;
};

/* Fields in vmStructs.cpp of Java 8, 11, 17, 21 and 25. */
static const struct field_row field_table[] = {
	{"CodeCache", "_heaps", JAVA_CACHE_HEAPS},
	{"CodeCache", "_heap", JAVA_CACHE_HEAP},
	{"GenericGrowableArray", "_len", JAVA_ARRAY_COUNT},
	{"GrowableArrayBase", "_len", JAVA_ARRAY_COUNT},
	{"GrowableArray<int>", "_data", JAVA_ARRAY_DATA},
	{"CodeHeap", "_memory", JAVA_HEAP_MEMORY},
	{"CodeHeap", "_segmap", JAVA_HEAP_MAP},
	{"CodeHeap", "_log2_segment_size", JAVA_HEAP_SEGMENT},
	{"VirtualSpace", "_low", JAVA_SPACE_LOW},
	{"VirtualSpace", "_low_boundary", JAVA_SPACE_FIRST},
	{"VirtualSpace", "_high_boundary", JAVA_SPACE_END},
	{"HeapBlock", "_header", JAVA_BLOCK_HEADER},
	{"HeapBlock::Header", "_used", JAVA_HEADER_USED},
	{"CodeBlob", "_name", JAVA_BLOB_NAME},
	{"CodeBlob", "_size", JAVA_BLOB_BYTES},
	{"CodeBlob", "_frame_size", JAVA_BLOB_FRAME},
	{"CodeBlob", "_frame_complete_offset", JAVA_BLOB_COMPLETE},
	{"CodeBlob", "_code_begin", JAVA_BLOB_CODE},
	{"CodeBlob", "_code_offset", JAVA_BLOB_CODE_OFFSET},
	{"ThreadsSMRSupport", "_java_thread_list", JAVA_THREADS},
	{"Threads", "_thread_list", JAVA_THREAD_FIRST},
	{"ThreadsList", "_length", JAVA_LIST_COUNT},
	{"ThreadsList", "_threads", JAVA_LIST_THREADS},
	{"JavaThread", "_next", JAVA_THREAD_NEXT},
	{"Thread", "_osthread", JAVA_THREAD_OS},
	{"JavaThread", "_osthread", JAVA_THREAD_OS},
	{"OSThread", "_thread_id", JAVA_OS_ID},
	{"JavaThread", "_stack_base", JAVA_THREAD_STACK},
	{"JavaThread", "_stack_size", JAVA_THREAD_STACK_BYTES},
	{"Thread", "_current_pending_monitor", JAVA_THREAD_PENDING},
	{"JavaThread", "_current_pending_monitor", JAVA_THREAD_PENDING},
	{"JavaThread", "_monitor_owner_id", JAVA_THREAD_OWNER_ID},
	{"JavaThread", "_lock_stack", JAVA_THREAD_LOCKS},
	{"LockStack", "_top", JAVA_LOCKS_TOP},
	{"LockStack", "_base[0]", JAVA_LOCKS_FIRST},
	{"ObjectMonitor", "_owner", JAVA_MONITOR_OWNER},
	{"ObjectMonitor", "_object", JAVA_MONITOR_OBJECT},
	{"JavaThread", "_threadObj", JAVA_THREAD_OBJECT},
	{"JavaThread", "_vthread", JAVA_THREAD_VIRTUAL},
	{"oopDesc", "_mark", JAVA_OBJECT_MARK},
	{"oopDesc", "_metadata._klass", JAVA_OBJECT_CLASS},
	{"oopDesc", "_metadata._compressed_klass", JAVA_OBJECT_NARROW},
	{"Klass", "_super", JAVA_CLASS_SUPER},
	{"Klass", "_name", JAVA_CLASS_NAME},
	{"InstanceKlass", "_constants", JAVA_CLASS_POOL},
	{"InstanceKlass", "_fields", JAVA_CLASS_FIELDS},
	{"InstanceKlass", "_java_fields_count", JAVA_CLASS_FIELD_COUNT},
	{"InstanceKlass", "_fieldinfo_stream", JAVA_CLASS_STREAM},
	{"Symbol", "_length", JAVA_NAME_LENGTH},
	{"Symbol", "_body", JAVA_NAME_TEXT},
	{"Array<int>", "_length", JAVA_LIST_LENGTH},
	{"Array<u1>", "_data", JAVA_BYTES_DATA},
	{"Array<u2>", "_data", JAVA_SHORTS_DATA},
	{"CompressedOops", "_narrow_oop._base", JAVA_OBJECT_BASE},
	{"CompressedOops", "_narrow_oop._shift", JAVA_OBJECT_SHIFT},
	{"CompressedOops", "_base", JAVA_OBJECT_BASE},
	{"CompressedOops", "_shift", JAVA_OBJECT_SHIFT},
	{"CompressedKlassPointers", "_narrow_klass._base", JAVA_CLASS_BASE},
	{"CompressedKlassPointers", "_narrow_klass._shift", JAVA_CLASS_SHIFT},
	{"CompressedKlassPointers", "_base", JAVA_CLASS_BASE},
	{"CompressedKlassPointers", "_shift", JAVA_CLASS_SHIFT},
	{"Universe", "_collectedHeap", JAVA_HEAP},
	{"CollectedHeap", "_is_gc_active", JAVA_HEAP_STOPPED},
	{"CollectedHeap", "_is_stw_gc_active", JAVA_HEAP_STOPPED},
	{"CollectedHeap", "_total_collections", JAVA_HEAP_COUNT},
	{"JVMFlag", "flags", JAVA_OPTIONS},
	{"JVMFlag", "numFlags", JAVA_OPTION_COUNT},
	{"JVMFlag", "_name", JAVA_OPTION_NAME},
	{"JVMFlag", "_addr", JAVA_OPTION_VALUE},
};

#define FIELD_ROWS (sizeof(field_table) / sizeof(field_table[0]))
#define NEEDED                                                                                 \
	(JAVA_BIT(JAVA_HEAP_MEMORY) | JAVA_BIT(JAVA_HEAP_MAP) | JAVA_BIT(JAVA_HEAP_SEGMENT) |  \
	 JAVA_BIT(JAVA_SPACE_LOW) | JAVA_BIT(JAVA_SPACE_FIRST) | JAVA_BIT(JAVA_SPACE_END) |    \
	 JAVA_BIT(JAVA_BLOCK_HEADER) | JAVA_BIT(JAVA_HEADER_USED) | JAVA_BIT(JAVA_BLOB_NAME) | \
	 JAVA_BIT(JAVA_BLOB_BYTES) | JAVA_BIT(JAVA_BLOB_FRAME))
#define STATIC                                                                                    \
	(JAVA_BIT(JAVA_CACHE_HEAPS) | JAVA_BIT(JAVA_CACHE_HEAP) | JAVA_BIT(JAVA_THREADS) |        \
	 JAVA_BIT(JAVA_THREAD_FIRST) | JAVA_BIT(JAVA_OBJECT_BASE) | JAVA_BIT(JAVA_OBJECT_SHIFT) | \
	 JAVA_BIT(JAVA_CLASS_BASE) | JAVA_BIT(JAVA_CLASS_SHIFT) | JAVA_BIT(JAVA_HEAP) |           \
	 JAVA_BIT(JAVA_OPTIONS) | JAVA_BIT(JAVA_OPTION_COUNT))
#define MONITORS_NEEDED                                                                  \
	(JAVA_BIT(JAVA_THREAD_OS) | JAVA_BIT(JAVA_OS_ID) | JAVA_BIT(JAVA_THREAD_STACK) | \
	 JAVA_BIT(JAVA_THREAD_STACK_BYTES) | JAVA_BIT(JAVA_THREAD_PENDING) |             \
	 JAVA_BIT(JAVA_MONITOR_OWNER))
#define LIST_NEEDED \
	(JAVA_BIT(JAVA_THREADS) | JAVA_BIT(JAVA_LIST_COUNT) | JAVA_BIT(JAVA_LIST_THREADS))
#define CHAIN_NEEDED (JAVA_BIT(JAVA_THREAD_FIRST) | JAVA_BIT(JAVA_THREAD_NEXT))
#define HEAPS_NEEDED \
	(JAVA_BIT(JAVA_CACHE_HEAPS) | JAVA_BIT(JAVA_ARRAY_COUNT) | JAVA_BIT(JAVA_ARRAY_DATA))

_Static_assert(JAVA_FIELDS <= 64, "a bit for each field");

bool java_text(struct thread_memory *memory, uint64_t address, char *text, size_t bytes)
{
	size_t used = 0;

	/* page by page: after a text there may be none */
	while (used < bytes - 1) {
		size_t part = THREAD_MEMORY_PAGE_BYTES - address % THREAD_MEMORY_PAGE_BYTES;

		part = part < bytes - 1 - used ? part : bytes - 1 - used;
		if (thread_memory_read_code(memory, address, text + used, part))
			return false;
		if (memchr(text + used, '\0', part))
			return true;
		used += part;
		address += part;
	}
	text[used] = '\0';
	return true;
}

/* A table in the process, at one of its rows. */
struct table {
	struct thread_memory *memory;
	uint64_t exported[MODULE_JAVA_EXPORTS];
	uint64_t row, stride;
};

static bool table_begin(struct table *table, enum module_java rows, enum module_java stride)
{
	table->row = table->exported[rows];
	table->stride = table->exported[stride];
	return table->stride >= sizeof(uint64_t) && table->stride <= STRIDE_MAX;
}

/* Reads a word of the row. */
static bool table_word(const struct table *table, enum module_java column, uint64_t *word)
{
	uint64_t offset = table->exported[column];

	return offset <= table->stride - sizeof(*word) &&
	       java_word(table->memory, table->row + offset, word);
}

static bool table_text(const struct table *table, enum module_java column, char *text)
{
	uint64_t address;

	return table_word(table, column, &address) &&
	       java_text(table->memory, address, text, NAME_BYTES);
}

static bool field_take(struct java_layout *layout, const struct table *table,
		       const struct field_row *row)
{
	bool is_static = JAVA_BIT(row->field) & STATIC;
	char type[NAME_BYTES];
	uint64_t value;

	if (!table_word(table, is_static ? MODULE_JAVA_FIELD_ADDRESS : MODULE_JAVA_FIELD_OFFSET,
			&value) ||
	    (!is_static && value > OFFSET_MAX))
		return false;
	if (row->field == JAVA_BLOB_COMPLETE || row->field == JAVA_THREAD_OBJECT) {
		/* other fields need no type */
		if (!table_text(table, MODULE_JAVA_FIELD_TYPE, type))
			return false;
		if (row->field == JAVA_BLOB_COMPLETE)
			layout->complete_short = !strcmp(type, "int16_t");
		else
			layout->thread_direct = !strcmp(type, "oop");
	}
	layout->at[row->field] = value;
	layout->reported |= JAVA_BIT(row->field);
	return true;
}

/* Reads the row's field, if it is wanted. */
static bool field_look(struct java_layout *layout, const struct table *table, const char *class)
{
	char name[NAME_BYTES];

	if (!table_text(table, MODULE_JAVA_FIELD_NAME, name))
		return false;
	for (size_t i = 0; i < FIELD_ROWS; i++)
		if (!strcmp(field_table[i].class, class) && !strcmp(field_table[i].name, name))
			return field_take(layout, table, &field_table[i]);
	return true;
}

static bool class_wanted(const char *class)
{
	for (size_t i = 0; i < FIELD_ROWS; i++)
		if (!strcmp(field_table[i].class, class))
			return true;
	return false;
}

static bool fields_read(struct java_layout *layout, struct table *table)
{
	char class[NAME_BYTES] = "";
	uint64_t address, last = 0;
	bool wanted = false;

	if (!table_begin(table, MODULE_JAVA_FIELDS, MODULE_JAVA_FIELD_STRIDE))
		return false;
	for (int i = 0; i < ROWS_MAX; i++, table->row += table->stride) {
		if (!table_word(table, MODULE_JAVA_FIELD_CLASS, &address))
			return false;
		if (!address)
			return true;
		if (address != last) { /* a class' fields follow each other */
			if (!java_text(table->memory, address, class, sizeof(class)))
				return false;
			wanted = class_wanted(class);
			last = address;
		}
		if (wanted && !field_look(layout, table, class))
			return false;
	}
	return false;
}

/* Reads the size of a class, if it is wanted. False: it makes no sense. */
static bool size_look(struct java_layout *layout, const struct table *table, const char *name)
{
	uint64_t *bytes = !strcmp(name, "HeapBlock")	  ? &layout->block_bytes
			  : !strcmp(name, "ConstantPool") ? &layout->pool_bytes
			  : !strcmp(name, "JVMFlag")	  ? &layout->option_bytes
							  : NULL;

	return !bytes ||
	       (table_word(table, MODULE_JAVA_TYPE_BYTES, bytes) && *bytes &&
		*bytes <= (bytes == &layout->block_bytes ? BLOCK_BYTES_MAX : CLASS_BYTES_MAX));
}

static bool types_read(struct java_layout *layout, struct table *table)
{
	char name[NAME_BYTES];
	uint64_t address;

	if (!table_begin(table, MODULE_JAVA_TYPES, MODULE_JAVA_TYPE_STRIDE))
		return false;
	for (int i = 0; i < ROWS_MAX; i++, table->row += table->stride) {
		if (!table_word(table, MODULE_JAVA_TYPE_NAME, &address))
			return false;
		if (!address || (layout->block_bytes && layout->pool_bytes && layout->option_bytes))
			return layout->block_bytes;
		if (!java_text(table->memory, address, name, sizeof(name)) ||
		    !size_look(layout, table, name))
			return false;
	}
	return false;
}

bool java_layout_has_monitors(const struct java_layout *layout)
{
	return java_layout_has_all(layout, MONITORS_NEEDED) &&
	       (java_layout_has_all(layout, LIST_NEEDED) ||
		java_layout_has_all(layout, CHAIN_NEEDED));
}

bool java_layout_get(struct java_layout *layout, const uint64_t exports[MODULE_JAVA_EXPORTS],
		     uint64_t distance, struct thread_memory *memory)
{
	struct table table = {.memory = memory};

	*layout = (struct java_layout){.reported = 0};
	for (int i = 0; i < MODULE_JAVA_EXPORTS; i++)
		if (!java_word(memory, exports[i] + distance, &table.exported[i]))
			return false;
	return fields_read(layout, &table) && types_read(layout, &table) &&
	       java_layout_has_all(layout, NEEDED) &&
	       (java_layout_has_all(layout, HEAPS_NEEDED) ||
		java_layout_has(layout, JAVA_CACHE_HEAP));
}
