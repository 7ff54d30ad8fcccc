/* SPDX-License-Identifier: GPL-2.0-or-later */
/* base/usdt_operand: where arguments of USDT probes are, in words of the assemblers */
#include "unit.h"
#include "base/usdt_operand.h"

#include <elf.h>

#define NONE USDT_NO_REGISTER

static void test_forms(void **state)
{
	static const struct {
		uint16_t machine;
		const char *text;
		struct usdt_operand operand;
		const char *symbol;
	} rows[] = {
		/* place, bytes, signed, dropped, base, index, scale, unused, offset */
		{EM_X86_64, "8@%rdi", {USDT_REGISTER, 8, false, 0, 5, NONE, 0, 0, 0}, ""},
		{EM_X86_64, "-4@%r12d", {USDT_REGISTER, 4, true, 0, 12, NONE, 0, 0, 0}, ""},
		{EM_X86_64, "2@%si", {USDT_REGISTER, 2, false, 0, 4, NONE, 0, 0, 0}, ""},
		{EM_X86_64, "1@%r9b", {USDT_REGISTER, 1, false, 0, 9, NONE, 0, 0, 0}, ""},
		{EM_X86_64, "1@%bh", {USDT_REGISTER, 1, false, 8, 3, NONE, 0, 0, 0}, ""},
		{EM_X86_64, "-4@$-3", {USDT_CONSTANT, 4, true, 0, NONE, NONE, 0, 0, -3}, ""},
		{EM_X86_64,
		 "8@$0xffffffffffffffff",
		 {USDT_CONSTANT, 8, false, 0, NONE, NONE, 0, 0, -1},
		 ""},
		{EM_X86_64, "8@(%rax)", {USDT_MEMORY, 8, false, 0, 0, NONE, 0, 0, 0}, ""},
		{EM_X86_64, "-2@-24(%rbp)", {USDT_MEMORY, 2, true, 0, 6, NONE, 0, 0, -24}, ""},
		{EM_X86_64, "8@16(%rax,%r10,8)", {USDT_MEMORY, 8, false, 0, 0, 10, 3, 0, 16}, ""},
		{EM_X86_64, "8@(%rax,%rdx)", {USDT_MEMORY, 8, false, 0, 0, 1, 0, 0, 0}, ""},
		{EM_X86_64, "8@64(,%rdx,4)", {USDT_MEMORY, 8, false, 0, NONE, 1, 2, 0, 64}, ""},
		{EM_X86_64, "4@name(%rip)", {USDT_MEMORY, 4, false, 0, 16, NONE, 0, 0, 0}, "name"},
		{EM_X86_64, "4@a.b+8(%rip)", {USDT_MEMORY, 4, false, 0, 16, NONE, 0, 0, 8}, "a.b"},
		{EM_X86_64,
		 "4@48+name-8(%rip)",
		 {USDT_MEMORY, 4, false, 0, 16, NONE, 0, 0, 40},
		 "name"},
		{EM_AARCH64, "8@x30", {USDT_REGISTER, 8, false, 0, 30, NONE, 0, 0, 0}, ""},
		{EM_AARCH64, "-4@w1", {USDT_REGISTER, 4, true, 0, 1, NONE, 0, 0, 0}, ""},
		{EM_AARCH64, "8@sp", {USDT_REGISTER, 8, false, 0, 31, NONE, 0, 0, 0}, ""},
		{EM_AARCH64, "4@wzr", {USDT_CONSTANT, 4, false, 0, NONE, NONE, 0, 0, 0}, ""},
		{EM_AARCH64, "-4@-7", {USDT_CONSTANT, 4, true, 0, NONE, NONE, 0, 0, -7}, ""},
		{EM_AARCH64, "8@[x2]", {USDT_MEMORY, 8, false, 0, 2, NONE, 0, 0, 0}, ""},
		{EM_AARCH64, "8@[sp, 16]", {USDT_MEMORY, 8, false, 0, 31, NONE, 0, 0, 16}, ""},
		{EM_AARCH64, "8@[x29, #-8]", {USDT_MEMORY, 8, false, 0, 29, NONE, 0, 0, -8}, ""},
		{EM_AARCH64, "8@[x0, x1]", {USDT_MEMORY, 8, false, 0, 0, 1, 0, 0, 0}, ""},
		{EM_AARCH64, "8@[x0, x1, lsl #3]", {USDT_MEMORY, 8, false, 0, 0, 1, 3, 0, 0}, ""},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct usdt_operand operand;
		const char *at = rows[i].text;
		char symbol[USDT_SYMBOL_SIZE];

		assert_true(usdt_operand_next(&at, rows[i].machine, &operand, symbol));
		if (memcmp(&operand, &rows[i].operand, sizeof(operand)) != 0 ||
		    strcmp(symbol, rows[i].symbol) != 0 || !usdt_operand_is_valid(&operand) || *at)
			fail_msg("%s: place %u, %u bytes, registers %u %u, offset %lld, %s",
				 rows[i].text, operand.place, operand.bytes, operand.base,
				 operand.index, (long long)operand.offset, symbol);
	}
}

static void test_unknown(void **state)
{
	static const struct {
		uint16_t machine;
		const char *text;
	} rows[] = {
		{EM_X86_64, "8f@%xmm0"},
		{EM_X86_64, "16@%rax"},
		{EM_X86_64, "@%rax"},
		{EM_X86_64, "3@%rax"},
		{EM_X86_64, "8@%rax,"},
		{EM_X86_64, "8@%rbq"},
		{EM_X86_64, "8@$"},
		{EM_X86_64, "8@$1x"},
		{EM_X86_64, "8@rax"},
		{EM_X86_64, "8@8"},
		{EM_X86_64, "8@%fs:8(%rax)"},
		{EM_X86_64, "8@name"},
		{EM_X86_64, "8@8(%rip)"},
		{EM_X86_64, "8@name(%rax)"},
		{EM_X86_64, "8@(%rax"},
		{EM_X86_64, "8@(%rax,%rip)"},
		{EM_X86_64, "8@(%rax,%rcx,3)"},
		{EM_X86_64, "8@()"},
		{EM_X86_64, "8@a+b(%rip)"},
		{EM_X86_64, "8@%rip"},
		{EM_X86_64, "8@x0"},
		{EM_AARCH64, "8@x31"},
		{EM_AARCH64, "8@x18446744073709551585"},
		{EM_AARCH64, "8@[x0"},
		{EM_AARCH64, "8@[x0, x1, lsl 4]"},
		{EM_AARCH64, "8@d0"},
		{EM_AARCH64, "8@[xzr]"},
		{EM_386, "4@%eax"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct usdt_operand operand;
		const char *at = rows[i].text;
		char symbol[USDT_SYMBOL_SIZE];

		if (!usdt_operand_next(&at, rows[i].machine, &operand, symbol) ||
		    operand.place != USDT_UNKNOWN || *symbol || usdt_operand_is_valid(&operand))
			fail_msg("%s: place %u, %s", rows[i].text, operand.place, symbol);
	}
}

static void test_several(void **state)
{
	const char *at = " 8@%rdi  oops -4@[sp, 8] ";
	struct usdt_operand operand;
	char symbol[USDT_SYMBOL_SIZE];

	assert_true(usdt_operand_next(&at, EM_X86_64, &operand, symbol));
	assert_int_equal(operand.place, USDT_REGISTER);
	assert_true(usdt_operand_next(&at, EM_X86_64, &operand, symbol));
	assert_int_equal(operand.place, USDT_UNKNOWN);
	assert_true(usdt_operand_next(&at, EM_AARCH64, &operand, symbol));
	assert_int_equal(operand.place, USDT_MEMORY);
	assert_false(usdt_operand_next(&at, EM_AARCH64, &operand, symbol));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_several),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
