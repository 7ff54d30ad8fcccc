/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory of a process that claims to be a JVM: make_corpus.py has the layout. It is this process'
 * own, at an address that does not change. Code is looked up at each address that its first page
 * could mean. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "unwind/runtime/java_frames.h"
#include "unwind/runtime/runtime_service.h"
#include "fuzz_memory.h"
#include "fuzz_row.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BASE 0x200000000000ull
#define BYTES 32768u
#define CODE 0x4000
#define CODE_STEP 0x400

static void module_make(struct module *module)
{
	*module = (struct module){.fd = -1, .has_exports = true};
	module->elf.segment_count = 1;
	module->elf.segments[0] = (struct elf_segment){0, 4096, 0, 4096, true};
	/* addresses in the file are the process', less the address of the mapping */
	for (unsigned int i = 0; i < MODULE_JAVA_EXPORTS; i++)
		module->exports.java[i] = 8ull * i;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct module module;
	static struct module_table modules = {.modules = {&module}, .count = 1};
	static struct mapping mapping = {.start = BASE,
					 .end = BASE + 4096,
					 .looked_at = true,
					 .path = (char *)"/usr/lib/jvm/x/libjvm.so"};
	static struct thread_memory memory;
	static char *base;
	const int64_t self = getpid();
	const struct stack_thread thread = {self, self, 1, 1, 0};
	struct process_maps maps = {.mappings = &mapping, .count = 1, .read_ns = 1};
	struct java_frames *java;

	if (!base) {
		base = fuzz_memory_map((uintptr_t)BASE, BYTES);
		thread_memory_init(&memory, "/proc", false, BYTES);
		module_make(&module);
	}
	if (!base || size > BYTES)
		return 0;
	memcpy(base, data, size);
	memset(base + size, 0, BYTES - size);
	runtime_service_clear();
	java = java_frames_new("/proc", &modules, NULL);
	java->reader.service = runtime_service;
	must(!thread_memory_begin(&memory, syscall(SYS_gettid), BASE + CODE));
	for (uint64_t at = BASE + CODE; at < BASE + BYTES; at += CODE_STEP) {
		struct java_code code = {.frame_words = 0};

		if (java_frames_find(java, &thread, &maps, &memory, at + 0x110, &code))
			must(code.frame_words < 1u << 20);
	}
	java_frames_clear(java);
	free(java);
	return 0;
}
