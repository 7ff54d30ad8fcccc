/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory of a process that claims to be a Python 3.14 with tasks of asyncio: make_corpus.py has the
 * layout. It is this process' own, at an address that does not change. */
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "unwind/runtime/python_tasks.h"
#include "unwind/runtime/runtime_service.h"
#include "fuzz_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define BASE 0x200000000000ull
#define BYTES 65536u
#define RUNTIME 64
#define ASYNCIO 0x380
#define COROUTINE_TYPE 0x3f0

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void text_check(const char *text, size_t size)
{
	must(strlen(text) < size);
}

static void groups_check(const struct tasks *tasks)
{
	uint64_t count = 0;

	for (size_t i = 0; i < tasks->group_count; i++) {
		const struct task_group *group = &tasks->groups[i];

		count += group->count;
		must(group->state <= TASK_WAITING);
		must(!i || group->count <= group[-1].count);
		text_check(group->stack, TASK_STACK_SIZE);
		text_check(group->names, TASK_NAMES_SIZE);
		text_check(group->awaited_by, TASK_NAMES_SIZE);
	}
	must(count == tasks->counts.tasks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct task_source source = {
		.pid = 1,
		.exports.python =
			{
				[MODULE_PYTHON_VERSION] = 8,
				[MODULE_PYTHON_CODE] = 16,
				[MODULE_PYTHON_STRING] = 32,
				[MODULE_PYTHON_RUNTIME] = RUNTIME,
				[MODULE_PYTHON_COROUTINE] = COROUTINE_TYPE,
			},
		.distance = BASE,
		.asyncio = BASE + ASYNCIO,
	};
	static struct thread_memory memory;
	struct tasks tasks = {.group_count = 0};
	char why[TASK_WHY_SIZE] = "";
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
	runtime_service_clear();
	thread_memory_begin(&memory, syscall(SYS_gettid), BASE);
	if (tasks_list(&tasks, &source, &memory, why))
		must(*why != '\0');
	else
		groups_check(&tasks);
	tasks_done(&tasks);
	return 0;
}
