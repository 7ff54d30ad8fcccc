/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory of a process that claims to be a Go program: make_corpus.py has the layout. It is this
 * process' own, at an address that does not change. Functions are named by their addresses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "unwind/runtime/goroutines.h"
#include "unwind/thread_memory.h"
#include "fuzz_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BASE 0x200000000000ull
#define BYTES 65536u
#define FUNCTIONS 16
#define OUTERMOST 0

static void must(bool holds)
{
	if (!holds)
		abort();
}

static int function_request(void *of, uint64_t address, struct file_go_frame_answer *answer)
{
	unsigned int number = (unsigned int)(address % FUNCTIONS);

	(void)of;
	answer->found = address < BYTES;
	answer->depth = (int32_t)number * 8 - 8;
	snprintf(answer->name, sizeof(answer->name), "%s%u", number % 2 ? "runtime." : "main.",
		 number);
	if (number == OUTERMOST)
		snprintf(answer->name, sizeof(answer->name), "runtime.goexit");
	return 0;
}

static void groups_check(const struct goroutines *goroutines)
{
	uint64_t count = 0;

	for (size_t i = 0; i < goroutines->group_count; i++) {
		const struct goroutine_group *group = &goroutines->groups[i];

		count += group->count;
		must(group->frame_count <= GOROUTINE_FRAMES_MAX);
		must(*goroutine_state_name(group->state));
		must(!i || group->count <= group[-1].count);
		for (uint32_t j = 0; j < group->frame_count; j++)
			must(goroutine_function(goroutines, group->frames[j]) != NULL);
	}
	must(count == goroutines->counts.program + goroutines->counts.system);
	for (size_t i = 0; i < GOROUTINE_REASONS_MAX; i++)
		must(strnlen(goroutines->reasons[i], GOROUTINE_REASON_SIZE) <
		     GOROUTINE_REASON_SIZE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct go_program program = {
		.list = 8, .count = 16, .reasons = 32, .reason_count = 4};
	static struct thread_memory memory;
	const struct goroutine_source source = {.memory = &memory,
						.tid = syscall(SYS_gettid),
						.program = &program,
						.distance = BASE,
						.request = function_request};
	struct goroutines goroutines = {.group_count = 0};
	const char *why = "";
	static char *base;

	if (!base) {
		base = fuzz_memory_map((uintptr_t)BASE, BYTES);
		must(base != NULL);
		thread_memory_init(&memory, "/proc", false, 0);
	}
	if (size > BYTES)
		return 0;
	memcpy(base, data, size);
	memset(base + size, 0, BYTES - size);
	if (goroutines_list(&goroutines, &source, &why))
		must(*why != '\0');
	else
		groups_check(&goroutines);
	goroutines_done(&goroutines);
	return 0;
}
