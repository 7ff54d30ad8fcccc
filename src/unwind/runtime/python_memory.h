/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the Python functions that a thread is in, and GILs, out of the memory of CPython, in a
 * parser. Everything in that memory may be a lie. */
#ifndef TSNAP_UNWIND_RUNTIME_PYTHON_MEMORY_H
#define TSNAP_UNWIND_RUNTIME_PYTHON_MEMORY_H

#include "unwind/runtime/python_layout.h"
#include "unwind/runtime/runtime_request.h"

/* Layout and addresses of an interpreter in a process. */
struct python {
	struct python_layout layout;
	uint64_t runtime, code_type, string_type;
};

#define PYTHON_STACK_CALLS 2048 /* reads of memory, for one stack */

/* Fill answers to requests, and return their bytes. */
size_t python_stack_answer(const struct runtime_request *of, struct thread_memory *memory,
			   void *to);
size_t python_gils_answer(const struct runtime_request *of, struct thread_memory *memory, void *to);
size_t python_gil_answer(const struct runtime_request *of, struct thread_memory *memory, void *to);
void python_memory_clear(void);	       /* forgets all processes and names */
size_t python_memory_name_count(void); /* returns how many names are kept */

/* Reads the GIL at an address. */
bool python_gil_read(const struct python *python, struct thread_memory *memory, uint64_t address,
		     bool with_location, struct python_gil *gil);

/* Returns the line of a code unit (two bytes of code) by a location table, or 0; reads nothing
 * else. Format: Objects/locations.md of 3.11. */
int64_t python_line(const uint8_t *table, size_t bytes, int64_t first_line, uint64_t unit);

#endif
