/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Expressions of malicious unwind tables that take long: their cost is limited to that of one
 * walk. */
#include "unit.h"

#include <dwarf.h>
#include <elf.h>
#include <unistd.h>

#include "unwind/frame_step.h"

#define OPERATIONS 200

/* A row whose caller's address is in a word of the stack, and whose saved registers are all
 * computed by one expression. */
struct scene {
	struct frame_operation operations[OPERATIONS];
	struct frame_row row;
	struct thread_memory memory;
	uint64_t stack[512];
	const struct machine *machine;
};

static void scene_make(struct scene *scene)
{
	*scene = (struct scene){.machine = machine_of_elf(EM_X86_64)};
	scene->row = (struct frame_row){
		.found = true,
		.cfa = {.kind = RULE_REGISTER, .number = (uint8_t)scene->machine->sp, .offset = 64},
		.ra = {.kind = RULE_AT_CFA, .offset = -8}};
	for (int i = 0; i < scene->machine->saved_count; i++)
		scene->row.saved[i] = (struct frame_rule){
			.kind = RULE_EXPRESSION, .count = OPERATIONS, .offset = 0};
	thread_memory_init(&scene->memory, "/proc", false, 8192);
}

static int step(struct scene *scene)
{
	struct user_registers registers = {.ip = 0x1000, .sp = (uintptr_t)scene->stack};

	return frame_step_row(scene->machine, scene->operations, &scene->row, &scene->memory,
			      &registers);
}

/* Makes operations that branch back without end. */
static void operations_circle(struct scene *scene)
{
	for (uint32_t i = 0; i < OPERATIONS; i++)
		scene->operations[i] = (struct frame_operation){.atom = DW_OP_lit1, .offset = i};
	for (uint32_t i = 1; i < OPERATIONS; i += 2) {
		/* branch to the operation before: three bytes and the distance */
		scene->operations[i].atom = DW_OP_bra;
		scene->operations[i].number = (uint64_t)(int64_t)-4;
	}
}

static void circles_end(void **state)
{
	static struct scene scene;
	unsigned int before, after;

	if (!machine_of_elf(EM_X86_64))
		skip();
	scene_make(&scene);
	operations_circle(&scene);
	assert_int_equal(thread_memory_begin(&scene.memory, getpid(), (uintptr_t)scene.stack), 0);
	before = scene.memory.steps_left;
	/* the registers may never be needed */
	assert_int_equal(step(&scene), 0);
	after = scene.memory.steps_left;
	assert_true(after < before);
	for (int i = 0; i < 512; i++)
		assert_int_equal(step(&scene), 0);
	assert_true(scene.memory.steps_left < before - after);
	/* the next walk has the full number of steps again */
	assert_int_equal(thread_memory_begin(&scene.memory, getpid(), (uintptr_t)scene.stack), 0);
	assert_int_equal(scene.memory.steps_left, before);
	thread_memory_done(&scene.memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(circles_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
