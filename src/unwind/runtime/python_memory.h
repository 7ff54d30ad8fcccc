/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads the Python functions that a thread is in, GILs, and locks that threads wait for, out of the
 * memory of CPython, in a parser. Everything in that memory may be a lie. Offsets in CPython's
 * structs are known for each version, of 64-bit builds; from 3.13 on the interpreter has them in
 * its own memory
 * (_Py_DebugOffsets). */
#ifndef TSNAP_UNWIND_RUNTIME_PYTHON_MEMORY_H
#define TSNAP_UNWIND_RUNTIME_PYTHON_MEMORY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unwind/runtime/runtime_request.h"

#define PYTHON_RUNTIME_HEAD_BYTES 768 /* bytes of _PyRuntime that python_layout_get() looks at */
#define PYTHON_OFFSET_MAX (1u << 20)
#define PYTHON_STRUCT_BYTES_MAX                                           \
	512 /* thread state, frame, code object, GIL: what is read of one \
	     */

/* Offsets in struct _gil_runtime_state from `locked`, an int, on. */
#define SWITCHES_AT 8	/* switch_number */
#define CONDITION_AT 16 /* cond, where threads wait for the GIL */
/* Offset of mutex, whose first word is 0 while it is free. */
#define MUTEX_AT (CONDITION_AT + sizeof(pthread_cond_t))
/* Offset of switch_cond, where the thread that gave the GIL away waits until another one has it. */
#define SWITCH_AT (MUTEX_AT + sizeof(pthread_mutex_t))

struct python_layout {
	uint32_t runtime_interpreters; /* _PyRuntime */
	uint32_t interpreter_next, interpreter_threads;
	uint32_t thread_next, thread_interpreter, thread_native_id;
	uint32_t thread_frame; /* 3.11 and 3.12: offset of the pointer to its _PyCFrame */
	uint32_t cframe_frame; /* offset in _PyCFrame; from 3.12 on stack frames are the marks */
	uint32_t cframe_previous;
	uint32_t frame_previous, frame_code, frame_instruction, frame_owner, frame_is_entry;
	uint32_t code_file, code_name, code_lines, code_first_line, code_bytes;
	uint32_t string_length, string_state;
	uint32_t string_bytes, string_wide_bytes; /* offset of ASCII text; of other text */
	uint32_t bytes_length, bytes_bytes;
	uint32_t runtime_gil;		 /* 3.11: offset of the GIL in _PyRuntime */
	uint32_t interpreter_gil;	 /* 3.12 on: offset of the GIL's address; 0: none */
	uint32_t gil_holder, gil_locked; /* offsets in struct _gil_runtime_state */
	/* 3.14 only: what python_tasks.c reads */
	uint32_t frame_stack_top; /* the pointer to what follows the stack's last slot */
	uint32_t generator_frame, generator_state; /* the frame itself; an int8_t */
	uint32_t type_name, type_flags;
	uint32_t set_used, set_table, set_mask;
	uint32_t number_tag, number_digits; /* PyLongObject */
	uint32_t list_next, list_previous;  /* struct llist_node */
	bool has_cframe;		    /* 3.11 and 3.12 */
	bool has_is_entry;		    /* 3.11 only */
	bool has_locks;			    /* 3.11 to 3.13: an RLock has a semaphore */
};

/* Fills the layout of a version. version: PY_VERSION_HEX as Py_Version has it; head: the first
 * bytes of _PyRuntime. False where it is a version that is not known, a build without the GIL, or
 * makes no sense. */
bool python_layout_get(struct python_layout *layout, uint64_t version,
		       const uint8_t head[PYTHON_RUNTIME_HEAD_BYTES]);

/* Layout and addresses of an interpreter in a process. */
struct python {
	struct python_layout layout;
	uint64_t runtime, code_type, string_type;
};

#define PYTHON_STACK_CALLS 2048 /* reads of memory, for one stack */
#define PYTHON_UTF8_BYTES 4
#define PYTHON_NAME_CHARS_MAX 200 /* characters of a function's name */
/* FRAME_OWNED_BY_CSTACK; in 3.14 FRAME_OWNED_BY_INTERPRETER, and more */
#define PYTHON_OWNED_BY_STACK 3
#define PYTHON_POINTER_BITS (~(uint64_t)7) /* 3.14 has marks in the other bits */

bool python_word(struct thread_memory *memory, uint64_t address, uint64_t *word);
/* Finds the interpreter in a process. exports: what its file exports; distance: of the process'
 * addresses from these. False where its version is not known. */
bool python_open(struct python *python, struct thread_memory *memory,
		 const uint64_t exports[MODULE_PYTHON_EXPORTS], uint64_t distance);
/* Reads at most `most` characters of a string, up to PYTHON_NAME_CHARS_MAX, the first or the last
 * ones, as UTF-8. text: PYTHON_UTF8_BYTES for each, and one. */
bool python_string_read(const struct python *python, struct thread_memory *memory, uint64_t address,
			size_t most, bool last, char *text);
/* Names of code at an instruction of it, "Class.method (file.py:12)". python_names_begin() begins a
 * scan, before which all of them may be forgotten. Returns the name's number, or 0 where it can't
 * be read; python_name_text(): valid until the next name. */
void python_names_begin(int64_t now_ns);
uint64_t python_frame_name(const struct python *python, struct thread_memory *memory, uint64_t pid,
			   uint64_t code, uint64_t instruction);
const char *python_name_text(uint64_t name);

/* Fill answers to requests, and return their bytes. */
size_t python_stack_answer(const struct runtime_request *of, struct thread_memory *memory,
			   void *to);
size_t python_gils_answer(const struct runtime_request *of, struct thread_memory *memory, void *to);
size_t python_gil_answer(const struct runtime_request *of, struct thread_memory *memory, void *to);
size_t python_lock_answer(const struct runtime_request *of, struct thread_memory *memory, void *to);
void python_memory_clear(void);	       /* forgets all processes and names */
size_t python_memory_name_count(void); /* returns how many names are kept */

/* Reads the GIL at an address. */
bool python_gil_read(const struct python *python, struct thread_memory *memory, uint64_t address,
		     bool with_location, struct python_gil *gil);

/* Returns the line of a code unit (two bytes of code) by a location table, or 0; reads nothing
 * else. Format: Objects/locations.md of 3.11. */
int64_t python_line(const uint8_t *table, size_t bytes, int64_t first_line, uint64_t unit);

#endif
