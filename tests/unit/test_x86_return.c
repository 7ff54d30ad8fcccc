/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Code without a table, followed to its return. tests/stack and chains_musl test whole programs;
 * tests/stack/instructions.c compares lengths of instructions with objdump's. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "unwind/x86_return.h"
#include "unit.h"

#define ADDRESS 0x1000
#define SP 7
#define FP 6

/* Place of the return address, as the test sets it. */
struct stack {
	uint8_t base;
	int64_t offset;
};

static bool is_return(const struct stack *stack, const struct x86_return *found)
{
	return found->base == stack->base && found->offset == stack->offset &&
	       (!found->called || found->offset % 16 == 8);
}

static int follow(const void *code, size_t bytes, bool exact, struct stack stack,
		  struct frame_row *row)
{
	struct elf_file elf = {
		.fd = -1,
		.image = code,
		.bytes = bytes,
		.segment_count = 1,
		.segments = {{0, bytes, ADDRESS, bytes, true}},
	};
	struct x86_return returns[X86_RETURNS_MAX];
	size_t count = x86_returns_find(&elf, ADDRESS, exact, returns);

	*row = (struct frame_row){0};
	for (size_t i = 0; i < count; i++)
		if (is_return(&stack, &returns[i])) {
			assert_true(x86_return_row(&returns[i], row));
			return 0;
		}
	return -ENOENT;
}

#define FOLLOW(text, exact, stack, row) follow(text, sizeof(text) - 1, exact, stack, row)

static void expect_row(const struct frame_row *row, uint8_t base, int32_t cfa)
{
	assert_true(row->followed);
	assert_int_equal(row->cfa.kind, RULE_REGISTER);
	assert_int_equal(row->cfa.number, base);
	assert_int_equal(row->cfa.offset, cfa);
	assert_int_equal(row->ra.kind, RULE_AT_CFA);
	assert_int_equal(row->ra.offset, -8);
}

static void frames_are_taken_back(void **state)
{
	struct frame_row row;

	/* add $0x18,%rsp; pop %rbx; pop %rbp; ret */
	assert_int_equal(
		FOLLOW("\x48\x83\xc4\x18\x5b\x5d\xc3", false, ((struct stack){SP, 0x28}), &row), 0);
	expect_row(&row, SP, 0x30);
	assert_int_equal(row.saved[0].kind, RULE_AT_CFA); /* rbx */
	assert_int_equal(row.saved[0].offset, 0x18 - 0x30);
	assert_int_equal(row.saved[1].offset, 0x20 - 0x30); /* rbp */
	assert_int_equal(row.saved[2].kind, RULE_SAME);	    /* r12 */
	/* sub $8,%rsp; call; add $8,%rsp; lea 0x10(%rsp),%rsp; pop %r15; ret */
	assert_int_equal(FOLLOW("\x48\x83\xec\x08\xe8\x00\x00\x00\x00\x48\x83\xc4\x08\x48\x8d\x64"
				"\x24\x10\x41\x5f\xc3",
				true, ((struct stack){SP, 0x18}), &row),
			 0);
	expect_row(&row, SP, 0x20);
	assert_int_equal(row.saved[5].offset, 0x10 - 0x20);
	/* add $16,%rsp, with an operand size that REX.W makes void; ret */
	assert_int_equal(FOLLOW("\x66\x48\x81\xc4\x10\x00\x00\x00\xc3", true,
				((struct stack){SP, 0x10}), &row),
			 0);
	/* push $5; pop %rax; mov 8(%rsp),%rbx; leave; ret */
	assert_int_equal(FOLLOW("\x6a\x05\x58\x48\x8b\x5c\x24\x08\xc9\xc3", false,
				((struct stack){FP, 8}), &row),
			 0);
	expect_row(&row, FP, 16);
	assert_int_equal(row.saved[0].kind, RULE_UNDEFINED); /* saved next to the other register */
	assert_int_equal(row.saved[1].offset, -16);
}

/* Code followed from the beginning of a function, or just after it: saved registers are
 * restored. */
static void frames_are_made(void **state)
{
	static const struct stack entered = {SP, 0}, pushed = {SP, 8};
	struct frame_row row;

	/* push %rbp; mov %rsp,%rbp; push %rbx; sub $8,%rsp; mov -8(%rbp),%rbx; leave; ret */
	assert_int_equal(FOLLOW("\x55\x48\x89\xe5\x53\x48\x83\xec\x08\x48\x8b\x5d\xf8\xc9\xc3",
				true, entered, &row),
			 0);
	expect_row(&row, SP, 8);
	assert_int_equal(row.saved[0].kind, RULE_SAME);
	assert_int_equal(row.saved[1].kind, RULE_SAME);
	/* mov %rsp,%rbp; push %rbx; sub $8,%rsp; mov -8(%rbp),%rbx; leave; ret */
	assert_int_equal(FOLLOW("\x48\x89\xe5\x53\x48\x83\xec\x08\x48\x8b\x5d\xf8\xc9\xc3", true,
				pushed, &row),
			 0);
	expect_row(&row, SP, 16);
	assert_int_equal(row.saved[0].kind, RULE_SAME);
	assert_int_equal(row.saved[1].kind, RULE_AT_CFA);
	assert_int_equal(row.saved[1].offset, -16);
	/* push %rbp; push %r12; sub $8,%rsp; add $8,%rsp; pop %r12; pop %rbp; ret */
	assert_int_equal(FOLLOW("\x55\x41\x54\x48\x83\xec\x08\x48\x83\xc4\x08\x41\x5c\x5d\xc3",
				true, entered, &row),
			 0);
	expect_row(&row, SP, 8);
	assert_int_equal(row.saved[1].kind, RULE_SAME);
	assert_int_equal(row.saved[2].kind, RULE_SAME);
	/* push %rbp; lea 8(%rsp),%rbp; lea -8(%rbp),%rsp; pop %rbp; ret */
	assert_int_equal(
		FOLLOW("\x55\x48\x8d\x6c\x24\x08\x48\x8d\x65\xf8\x5d\xc3", true, entered, &row), 0);
	expect_row(&row, SP, 8);
	assert_int_equal(row.saved[1].kind, RULE_SAME);
	/* mov %rbx,0x18(%rsp); mov $5,%ebx; mov 0x18(%rsp),%rbx; add $0x28,%rsp; ret: a register is
	 * saved where it is needed, after the frame is made */
	assert_int_equal(FOLLOW("\x48\x89\x5c\x24\x18\xbb\x05\x00\x00\x00\x48\x8b\x5c\x24"
				"\x18\x48\x83\xc4\x28\xc3",
				true, ((struct stack){SP, 0x28}), &row),
			 0);
	expect_row(&row, SP, 0x30);
	assert_int_equal(row.saved[0].kind, RULE_SAME);
	/* mov $5,%ebx; mov 0x18(%rsp),%rbx; add $0x28,%rsp; ret: entered after the save */
	assert_int_equal(FOLLOW("\xbb\x05\x00\x00\x00\x48\x8b\x5c\x24\x18\x48\x83\xc4\x28\xc3",
				true, ((struct stack){SP, 0x28}), &row),
			 0);
	assert_int_equal(row.saved[0].kind, RULE_AT_CFA);
	assert_int_equal(row.saved[0].offset, 0x18 - 0x30);
	/* pop %rbx; pop %rbp; then the tail call, with the same return address: push %rbp; push
	 * %rbx; pop %rbx; pop %rbp; ret */
	assert_int_equal(FOLLOW("\x5b\x5d\xeb\x00\x55\x53\x5b\x5d\xc3", true,
				((struct stack){SP, 16}), &row),
			 0);
	expect_row(&row, SP, 24);
	assert_int_equal(row.saved[0].offset, -24);
	assert_int_equal(row.saved[1].offset, -16);
	/* pop %rbx; pop %rbp; push %r12; pop %rbx: another register */
	assert_int_equal(
		FOLLOW("\x5b\x5d\xeb\x00\x41\x54\x5b\xc3", true, ((struct stack){SP, 16}), &row),
		0);
	assert_int_equal(row.saved[0].kind, RULE_UNDEFINED);
	/* after leave: push %rbx; pop %rbx; ret */
	assert_int_equal(
		FOLLOW("\x48\x8b\x5d\xf8\xc9\x53\x5b\xc3", true, ((struct stack){FP, 8}), &row), 0);
	assert_int_equal(row.saved[0].offset, -8 - 16);
	assert_int_equal(row.saved[1].offset, -16);
	/* push %rbx; pop %rax; push %rax; pop %rbx; ret */
	assert_int_equal(FOLLOW("\x53\x58\x50\x5b\xc3", true, entered, &row), 0);
	assert_int_equal(row.saved[0].kind, RULE_UNDEFINED);
}

static void ways_are_tried(void **state)
{
	struct frame_row row;

	/* 1: test %eax,%eax; je 2f; jmp 1b; 2: pop %rbx; ret */
	assert_int_equal(
		FOLLOW("\x85\xc0\x74\x02\xeb\xfa\x5b\xc3", true, ((struct stack){SP, 8}), &row), 0);
	expect_row(&row, SP, 16);
	/* je 1f; hlt; 1: jmp 2f; int3; 2: ret */
	assert_int_equal(
		FOLLOW("\x74\x01\xf4\xeb\x01\xcc\xc3", true, ((struct stack){SP, 0}), &row), 0);
	/* je 1f, a long branch; ud2; 1: ret */
	assert_int_equal(
		FOLLOW("\x0f\x84\x02\x00\x00\x00\x0f\x0b\xc3", true, ((struct stack){SP, 0}), &row),
		0);
}

static void what_is_not_known_is_not_told(void **state)
{
	struct frame_row row;

	/* jmp *%rax; and $-16,%rsp; sub %rax,%rsp; mov %rdi,%rsp; enter; a circle; pop %rsp; ret $8
	 */
	static const struct {
		const char *code;
		size_t bytes;
	} codes[] = {{"\xff\xe0\xc3", 3},     {"\x48\x83\xe4\xf0\xc3", 5}, {"\x48\x29\xc4\xc3", 4},
		     {"\x48\x89\xfc\xc3", 4}, {"\xc8\x00\x00\x00\xc3", 5}, {"\xeb\xfe\xc3", 3},
		     {"\x5c\xc3", 2},	      {"\xc2\x08\x00", 3}};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		assert_int_equal(
			follow(codes[i].code, codes[i].bytes, true, (struct stack){SP, 0}, &row),
			-ENOENT);
	/* leave after the frame pointer was restored */
	assert_int_equal(FOLLOW("\x5d\xc9\xc3", true, ((struct stack){FP, 8}), &row), -ENOENT);
	/* end of the code */
	assert_int_equal(FOLLOW("\x48\x83\xc4", true, ((struct stack){SP, 0}), &row), -ENOENT);
	assert_int_equal(follow("", 0, true, (struct stack){SP, 0}, &row), -ENOENT);
	/* after a call that does not return: the next function restores the stack as it was */
	assert_int_equal(FOLLOW("\x53\x5b\xc3", false, ((struct stack){SP, 0}), &row), -ENOENT);
}

/* Data from a parser may have any value. */
static void lies_make_no_row(void **state)
{
	const struct x86_return good = {.offset = 8, .base = SP},
				lies[] = {
					{.offset = 8, .base = 16},
					{.offset = 8, .base = SP, .called = 2},
					{.offset = INT32_MAX, .base = SP},
					{.offset = INT32_MIN, .base = SP},
					{.offset = 8,
					 .base = SP,
					 .saved = {[5] = {.kind = RULE_EXPRESSION}}},
				};
	struct frame_row row;

	assert_true(x86_return_row(&good, &row));
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++)
		if (x86_return_row(&lies[i], &row))
			fail_msg("a row of lie %zu", i);
}

static void anything_ends(void **state)
{
	uint8_t code[256];
	struct frame_row row;
	unsigned int dice = 6;

	for (int round = 0; round < 20000; round++) {
		for (size_t i = 0; i < sizeof(code); i++)
			code[i] = (uint8_t)(rand_r(&dice) >> 7);
		follow(code, 1 + (size_t)round % sizeof(code), round % 2,
		       (struct stack){SP, 8 * (round % 8)}, &row);
	}
	/* greatest number of branches and jumps */
	memset(code, 0x75, sizeof(code));
	assert_int_equal(follow(code, sizeof(code), true, (struct stack){SP, 0}, &row), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_are_taken_back),
		cmocka_unit_test(frames_are_made),
		cmocka_unit_test(ways_are_tried),
		cmocka_unit_test(what_is_not_known_is_not_told),
		cmocka_unit_test(lies_make_no_row),
		cmocka_unit_test(anything_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
