/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "unwind/runtime/python_code.h"
#include "unwind/function_name.h"

#include <stdio.h>
#include <string.h>

#define OBJECT_TYPE 8 /* offset of ob_type in PyObject, in all versions */
#define STRING_LENGTH_MAX (1u << 24)
#define LINES_BYTES_MAX 16384
#define CODE_UNIT_BYTES 2

/* Kinds of location entries. */
#define ENTRY_ONE_LINE 10 /* first of three kinds, 10 to 12 */
#define ENTRY_NO_COLUMN 13
#define ENTRY_LONG 14
#define ENTRY_NONE 15

bool python_open(struct python *python, struct thread_memory *memory,
		 const uint64_t exports[MODULE_PYTHON_EXPORTS], uint64_t distance)
{
	uint8_t head[PYTHON_RUNTIME_HEAD_BYTES];
	uint64_t version;

	*python = (struct python){
		.runtime = exports[MODULE_PYTHON_RUNTIME] + distance,
		.code_type = exports[MODULE_PYTHON_CODE] + distance,
		.string_type = exports[MODULE_PYTHON_STRING] + distance,
	};
	return exports[MODULE_PYTHON_VERSION] && exports[MODULE_PYTHON_CODE] &&
	       exports[MODULE_PYTHON_STRING] &&
	       python_word(memory, exports[MODULE_PYTHON_VERSION] + distance, &version) &&
	       !thread_memory_read(memory, python->runtime, head, sizeof(head)) &&
	       python_layout_get(&python->layout, version, head);
}

bool python_word(struct thread_memory *memory, uint64_t address, uint64_t *word)
{
	return !thread_memory_read(memory, address, word, sizeof(*word));
}

static bool object_is(struct thread_memory *memory, uint64_t address, uint64_t type)
{
	uint64_t head[2];

	return address && !thread_memory_read(memory, address, head, sizeof(head)) &&
	       head[OBJECT_TYPE / sizeof(head[0])] == type;
}

bool python_code_read(const struct python *python, struct thread_memory *memory, uint64_t address,
		      struct python_code *code)
{
	const struct python_layout *layout = &python->layout;
	int32_t line;

	if (!object_is(memory, address, python->code_type) ||
	    !python_word(memory, address + layout->code_name, &code->name) ||
	    !python_word(memory, address + layout->code_file, &code->file) ||
	    !python_word(memory, address + layout->code_lines, &code->lines) ||
	    thread_memory_read(memory, address + layout->code_first_line, &line, sizeof(line)))
		return false;
	code->bytes = address + layout->code_bytes;
	code->first_line = line;
	return true;
}

static size_t utf8_put(char *to, uint32_t c)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 0x3f));
		to[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | (c >> 18 & 0x07));
	to[1] = (char)(0x80 | (c >> 12 & 0x3f));
	to[2] = (char)(0x80 | (c >> 6 & 0x3f));
	to[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* Returns a character of a text; a question mark for one that no text may have in it. */
static uint32_t character_at(const uint8_t *bytes, unsigned int kind, size_t at)
{
	uint32_t c = 0;

	memcpy(&c, bytes + at * kind, kind);
	return !c || (c >= 0xd800 && c < 0xe000) || c > 0x10ffff ? '?' : c;
}

/* Reads at most `most` characters of a string, the first or the last ones, as UTF-8. text:
 * PYTHON_UTF8_BYTES for each, and one. PyASCIIObject and PyCompactUnicodeObject of
 * Include/cpython/unicodeobject.h. */
static bool string_read(const struct python *python, struct thread_memory *memory, uint64_t address,
			size_t most, bool last, char *text)
{
	const struct python_layout *layout = &python->layout;
	uint8_t bytes[PYTHON_UTF8_BYTES * PYTHON_NAME_CHARS_MAX];
	unsigned int kind;
	uint64_t length;
	uint32_t state;
	size_t used = 0;

	if (!object_is(memory, address, python->string_type) ||
	    !python_word(memory, address + layout->string_length, &length) ||
	    thread_memory_read(memory, address + layout->string_state, &state, sizeof(state)) ||
	    length > STRING_LENGTH_MAX)
		return false;
	kind = state >> 2 & 7;
	if ((kind != 1 && kind != 2 && kind != 4) || !(state & 0x20) /* compact */)
		return false;
	address += state & 0x40 /* ASCII */ ? layout->string_bytes : layout->string_wide_bytes;
	if (length > most) {
		address += last ? (length - most) * kind : 0;
		length = most;
	}
	if (thread_memory_read(memory, address, bytes, length * kind))
		return false;
	for (size_t i = 0; i < length; i++)
		used += utf8_put(text + used, character_at(bytes, kind, i));
	text[used] = '\0';
	return true;
}

bool python_texts_read(const struct python *python, struct thread_memory *memory,
		       const struct python_code *code, struct python_texts *texts)
{
	return string_read(python, memory, code->name, PYTHON_NAME_CHARS_MAX, false, texts->name) &&
	       string_read(python, memory, code->file, PYTHON_FILE_CHARS_MAX, true, texts->file);
}

/* Reads a number of six bits a byte, lowest first; bit 6: one more byte comes. *at: after the
 * number then. */
static uint64_t varint_take(const uint8_t *table, size_t bytes, size_t *at)
{
	uint64_t value = 0;

	for (unsigned int shift = 0; *at < bytes && shift < 36; shift += 6) {
		uint8_t byte = table[(*at)++];

		value |= (uint64_t)(byte & 0x3f) << shift;
		if (!(byte & 0x40))
			break;
	}
	return value;
}

int64_t python_line(const uint8_t *table, size_t bytes, int64_t first_line, uint64_t unit)
{
	int64_t line = first_line;
	uint64_t passed = 0;
	size_t at = 0;

	while (at < bytes) {
		unsigned int kind = table[at] >> 3 & 15;

		passed += (table[at++] & 7) + 1;
		if (kind == ENTRY_LONG || kind == ENTRY_NO_COLUMN) {
			uint64_t change = varint_take(table, bytes, &at);

			line += change & 1 ? -(int64_t)(change >> 1) : (int64_t)(change >> 1);
		} else if (kind >= ENTRY_ONE_LINE && kind < ENTRY_NO_COLUMN) {
			line += kind - ENTRY_ONE_LINE;
		}
		if (unit < passed)
			return kind == ENTRY_NONE || line < 0 ? 0 : line;
		while (at < bytes && !(table[at] & 0x80)) /* columns */
			at++;
	}
	return 0;
}

static int64_t line_read(const struct python *python, struct thread_memory *memory,
			 const struct python_code *code, uint64_t instruction)
{
	uint64_t unit = (instruction - code->bytes) / CODE_UNIT_BYTES, bytes;
	uint8_t table[LINES_BYTES_MAX];

	/* the instruction of code that has not begun is the unit before the first */
	if (instruction < code->bytes)
		return code->first_line;
	if (!python_word(memory, code->lines + python->layout.bytes_length, &bytes) ||
	    bytes > sizeof(table))
		return 0;
	if (thread_memory_read(memory, code->lines + python->layout.bytes_bytes, table, bytes))
		return 0;
	return python_line(table, bytes, code->first_line, unit);
}

void python_code_location(const struct python *python, struct thread_memory *memory,
			  const struct python_code *code, const struct python_texts *texts,
			  uint64_t instruction, char location[PYTHON_LOCATION_SIZE])
{
	int64_t line = line_read(python, memory, code, instruction);
	const char *file = strrchr(texts->file, '/');

	file = file ? file + 1 : texts->file;
	if (line)
		snprintf(location, PYTHON_LOCATION_SIZE, "%.150s:%lld", file, (long long)line);
	else
		snprintf(location, PYTHON_LOCATION_SIZE, "%.150s", file);
	function_name_clean(location);
}

void python_code_name(const struct python *python, struct thread_memory *memory,
		      const struct python_code *code, const struct python_texts *texts,
		      uint64_t instruction, char name[FUNCTION_NAME_SIZE])
{
	char location[PYTHON_LOCATION_SIZE];

	python_code_location(python, memory, code, texts, instruction, location);
	snprintf(name, FUNCTION_NAME_SIZE, "%.300s (%s)", texts->name, location);
	function_name_clean(name);
}
