/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A process with a Python interpreter, made up in this process' memory. Functions that make
 * something return its address. */
#ifndef TSNAP_TESTS_PYTHON_SCENE_H
#define TSNAP_TESTS_PYTHON_SCENE_H

#include "unwind/runtime/python_frames.h"
#include "unwind/runtime/python_memory.h"
#include "unwind/runtime/runtime_service.h"

#define ARENA_BYTES 262144
#define STACK_WORDS 64
#define INSTRUCTION 20 /* offset in code */

#define V3_11 0x030b02f0
#define V3_12 0x030c01f0
#define V3_13 0x030d00f0
#define V3_14 0x030e00f0

#define VERSION_COUNT 4
extern const uint64_t versions[VERSION_COUNT];

/* One thread with one interpreter, and a module whose file exports it. */
struct python_scene {
	uint64_t version;
	uint8_t arena[ARENA_BYTES];
	size_t used;
	uint64_t stack[STACK_WORDS]; /* the thread's C stack */
	uint64_t code_type, string_type, runtime, interpreter, state, cframe;
	struct python_layout layout;
	struct module module;
	struct module_table modules;
	struct thread_memory memory;
	struct python_frames python;
	struct stack_thread thread;
	struct stack_walk walk;
};

uint64_t fake_memory(struct python_scene *scene, size_t bytes);
void put(uint64_t address, const void *bytes, size_t count);
void put_word(uint64_t address, uint64_t word);
/* Makes a string as PyUnicode_New() lays it out. kind: bytes of a character. */
uint64_t string_make(struct python_scene *scene, unsigned int kind, bool ascii, const void *text,
		     size_t length);
uint64_t text_make(struct python_scene *scene, const char *text);
/* Makes code whose unit INSTRUCTION / 2 is in the line after its first. */
uint64_t code_make(struct python_scene *scene, uint64_t name, uint64_t file, int32_t first_line);
uint64_t function_make(struct python_scene *scene, const char *name);
void frame_put(struct python_scene *scene, uint64_t at, uint64_t code, uint64_t previous,
	       uint8_t owner);
uint64_t frame_make(struct python_scene *scene, uint64_t code, uint64_t previous);
uint64_t stack_at(const struct python_scene *scene, size_t word);
/* Fills the members of _Py_DebugOffsets that are read. */
void head_fill(uint8_t *head, uint64_t version);
void python_scene_make(struct python_scene *scene, uint64_t version);
void python_scene_done(struct python_scene *scene);
/* Two calls of the interpreter: inner and outer in one, main in another; the C frames: 0 the
 * innermost, 1 and 3 the calls, 2 between, 4 the outermost. Each has eight words of the stack. */
void calls_make(struct python_scene *scene);

#endif
