/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The function, file and line of a CPython code object in another process' memory. */
#ifndef TSNAP_UNWIND_RUNTIME_PYTHON_CODE_H
#define TSNAP_UNWIND_RUNTIME_PYTHON_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/module_table.h"
#include "unwind/runtime/python_layout.h"
#include "unwind/function_name.h"
#include "unwind/thread_memory.h"

/* Layout and addresses of an interpreter in a process. */
struct python {
	struct python_layout layout;
	uint64_t runtime, code_type, string_type;
};

#define PYTHON_UTF8_BYTES 4
#define PYTHON_NAME_CHARS_MAX 200 /* characters of a function's name */
#define PYTHON_FILE_CHARS_MAX 120 /* the last ones of a path */

/* Facts that distinguish a code object, together with its texts, from a later one at its
 * address. */
struct python_code {
	uint64_t name, file, lines;
	uint64_t bytes; /* address of its first instruction */
	int64_t first_line;
};

/* Texts of a code object, whose addresses others may have later as well. */
struct python_texts {
	char name[PYTHON_UTF8_BYTES * PYTHON_NAME_CHARS_MAX + 1];
	char file[PYTHON_UTF8_BYTES * PYTHON_FILE_CHARS_MAX + 1];
};

/* Finds the interpreter in a process. exports: what its file exports; distance: of the process'
 * addresses from these. False where its version is not known. */
bool python_open(struct python *python, struct thread_memory *memory,
		 const uint64_t exports[MODULE_PYTHON_EXPORTS], uint64_t distance);

bool python_word(struct thread_memory *memory, uint64_t address, uint64_t *word);

/* Reads a code object. False where there is none. */
bool python_code_read(const struct python *python, struct thread_memory *memory, uint64_t address,
		      struct python_code *code);

/* Reads the texts of a code object. False where they can't be read. */
bool python_texts_read(const struct python *python, struct thread_memory *memory,
		       const struct python_code *code, struct python_texts *texts);

/* Fills name, "Class.method (file.py:12)", cut where it is long, without what separates frames.
 * instruction: address of one of the code's. */
void python_code_name(const struct python *python, struct thread_memory *memory,
		      const struct python_code *code, const struct python_texts *texts,
		      uint64_t instruction, char name[FUNCTION_NAME_SIZE]);

#define PYTHON_LOCATION_SIZE 176
/* Fills location, "file.py:12", cut where it is long; without a line where that is not known. */
void python_code_location(const struct python *python, struct thread_memory *memory,
			  const struct python_code *code, const struct python_texts *texts,
			  uint64_t instruction, char location[PYTHON_LOCATION_SIZE]);

/* Returns the line of a code unit (two bytes of code) by a location table, or 0; reads nothing
 * else. Format: Objects/locations.md of 3.11. */
int64_t python_line(const uint8_t *table, size_t bytes, int64_t first_line, uint64_t unit);

#endif
