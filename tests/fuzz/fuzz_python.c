/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory of a process that claims to be a Python interpreter: make_corpus.py has the layout. It is
 * this process' own, at an address that does not change. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/names.h"
#include "unwind/runtime/python_frames.h"
#include "unwind/runtime/runtime_service.h"
#include "fuzz_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BASE 0x200000000000ull
#define BYTES 65536u
#define RUNTIME 64
#define STACK 0x400
#define FRAMES 5
#define FRAME_BYTES 64

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void walk_make(struct stack_walk *walk)
{
	walk->end = WALK_WHOLE;
	walk->count = FRAMES;
	for (uint32_t i = 0; i < FRAMES; i++) {
		walk->frames[i] = (struct frame){0, i};
		walk->locations[i] =
			(struct frame_location){BASE + i, BASE + STACK + i * FRAME_BYTES};
	}
}

static void walk_check(const struct stack_walk *walk)
{
	uint32_t others = 0;

	must(walk->count && walk->count <= STACK_FRAMES_MAX);
	for (uint32_t i = 0; i < walk->count; i++) {
		const char *name = frame_own_name(&walk->frames[i]);

		others += !name;
		for (; name && *name; name++)
			must(*name != ';' && ((unsigned char)*name >= ' ') && *name != 0x7f);
	}
	must(others <= FRAMES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct module module = {.fd = -1, .has_exports = true};
	static struct module_table modules = {.modules = {&module}, .count = 1};
	static struct python_frames python;
	static struct stack_walk walk;
	const int64_t self = getpid();
	const struct stack_thread thread = {self, self, 1, 1, 0};
	static char *base;
	struct runtime_request lock = {.kind = RUNTIME_PYTHON_LOCK,
				       .pid = self,
				       .tid = self,
				       .now_ns = 1,
				       .distance = BASE,
				       .id = (uint64_t)self,
				       .address = BASE + STACK,
				       .with_location = true};
	struct runtime_standing standing = {0};
	struct python_lock_answer answer = {0};

	if (!base) {
		base = fuzz_memory_map((uintptr_t)BASE, BYTES);
		module.exports.python[MODULE_PYTHON_VERSION] = 8;
		module.exports.python[MODULE_PYTHON_CODE] = 16;
		module.exports.python[MODULE_PYTHON_STRING] = 32;
		module.exports.python[MODULE_PYTHON_RUNTIME] = RUNTIME;
	}
	if (!base || size > BYTES)
		return 0;
	memcpy(base, data, size);
	memset(base + size, 0, BYTES - size);
	runtime_service_clear();
	python_frames_init(&python, "/proc", &modules, NULL);
	python.reader.service = runtime_service;
	walk_make(&walk);
	python_frames_add(&python, &thread, &walk);
	walk_check(&walk);
	lock.exports = module.exports;
	must(runtime_request(&python.reader, &standing, &lock, NULL, &answer, sizeof(answer)) ==
	     sizeof(answer));
	must(memchr(answer.location, 0, sizeof(answer.location)));
	python_frames_clear(&python);
	names_clear();
	return 0;
}
