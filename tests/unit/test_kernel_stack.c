/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kernel stacks from call chains, by names as /proc/kallsyms has them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "unwind/kernel_stack.h"
#include "unit.h"

static const char listed[] = "ffffffff81000100 T first_name\n"
			     "ffffffff81000100 t second_name\n"
			     "ffffffff81000050 T before_them\n"
			     "ffffffff81000200 D no_function\n"
			     "ffffffff81001000 T vfs_read\n"
			     "ffffffff81002000 T do_syscall_64\n"
			     "ffffffff81003000 T entry_SYSCALL_64_after_hwframe\n"
			     "ffffffff81004000 T asm_sysvec_call_function_single\n"
			     "ffffffff81005000 T flush_smp_call_function_queue\n"
			     "ffffffff81007000 T __sched_text_start\n"
			     "ffffffff81007000 T __schedule\n"
			     "ffffffff81007100 T schedule\n"
			     "ffffffff81008000 T __sched_text_end\n"
			     "ffffffffc0000000 t of_module\t[module]\n"
			     "\n"
			     "x\n"
			     "ffffffff81006000\n"
			     "ffffffff81006000 T\n"
			     "ffffffff81006000 T \n"
			     "ffffffffc0001000 t bpf_prog_0_a;b\t[bpf]\n"
			     "ffffffffc0002000 t no_end";

#define IN(address) (0xffffffff81000000 + (address))

static int symbols_read(const char *text, struct kernel_symbols *symbols)
{
	char path[] = "/tmp/kallsyms-XXXXXX";
	int fd = mkstemp(path), err;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	err = kernel_symbols_read(symbols, path);
	unlink(path);
	return err;
}

static int open_listed(void **state)
{
	static struct kernel_symbols symbols;

	*state = &symbols;
	return symbols_read(listed, &symbols);
}

static int close_listed(void **state)
{
	kernel_symbols_done(*state);
	return 0;
}

static void names_by_address(void **state)
{
	const struct kernel_symbols *symbols = *state;

	assert_null(kernel_symbol_find(symbols, 0));
	assert_null(kernel_symbol_find(symbols, IN(0x4f)));
	assert_string_equal(kernel_symbol_find(symbols, IN(0x50)), "before_them");
	assert_string_equal(kernel_symbol_find(symbols, IN(0xff)), "before_them");
	/* the first of two names is used, and symbols of data are not */
	assert_string_equal(kernel_symbol_find(symbols, IN(0x300)), "first_name");
	assert_string_equal(kernel_symbol_find(symbols, 0xffffffffc0000fff), "of_module");
	/* characters that would end a frame of a folded stack cut the name */
	assert_string_equal(kernel_symbol_find(symbols, 0xffffffffc0001000), "bpf_prog_0_a");
	assert_null(kernel_symbol_find(symbols, 0xffffffffd0000000));
	assert_null(kernel_symbol_find(symbols, UINT64_MAX));
}

static void hidden_addresses(void **state)
{
	struct kernel_symbols symbols;

	assert_int_equal(symbols_read("0000000000000000 T a\n0000000000000000 T b\n", &symbols),
			 -ENODATA);
	assert_null(kernel_symbol_find(&symbols, 1));
	kernel_symbols_done(&symbols);
	assert_int_equal(symbols_read("", &symbols), -ENODATA);
	kernel_symbols_done(&symbols);
	assert_int_equal(kernel_symbols_read(&symbols, "/nonexistent"), -ENOENT);
}

/* Symbols beyond the capacity are counted. */
static void symbols_are_bounded(void **state)
{
	struct text listing = {0};
	struct kernel_symbols symbols;

	for (unsigned int i = 1; i <= SYMBOLS_MAX + 3; i++)
		text_add_format(&listing, "%x t f\n", 16 * i);
	assert_int_equal(symbols_read(text_string(&listing), &symbols), 0);
	assert_int_equal(symbols.table.count, SYMBOLS_MAX);
	assert_int_equal(symbols.table.refused, 3);
	kernel_symbols_done(&symbols);
	text_done(&listing);
}

static void expect(const struct kernel_stack *stack, const char *names)
{
	char found[1024] = "";

	for (uint32_t i = 0; i < stack->count; i++) {
		strcat(found, stack->names[i]);
		strcat(found, " ");
	}
	assert_string_equal(found, names);
}

static void chains(void **state)
{
	/* the first is a location, the next ones are return addresses: the byte before counts */
	static const uint64_t interrupted[] = {IN(0x5010), IN(0x4010), IN(0x1000), IN(0x2000 + 5),
					       IN(0x3000 + 5)};
	static const uint64_t returns[] = {IN(0x1010), IN(0x2000), IN(0x3005)};
	static struct kernel_stack stack;

	assert_true(kernel_stack_of_chain(&stack, *state, interrupted, 5, true));
	expect(&stack, "vfs_read do_syscall_64 entry_SYSCALL_64_after_hwframe ");
	/* user mode: no kernel frames are left */
	assert_true(kernel_stack_of_chain(&stack, *state, interrupted, 2, true));
	expect(&stack, "");
	assert_true(kernel_stack_of_chain(&stack, *state, interrupted, 0, true));
	/* no interrupt: the owner of the frames is not known */
	assert_false(kernel_stack_of_chain(&stack, *state, returns, 3, true));
	assert_true(kernel_stack_of_chain(&stack, *state, returns, 3, false));
	expect(&stack, "vfs_read vfs_read entry_SYSCALL_64_after_hwframe ");
	assert_true(kernel_stack_of_chain(&stack, *state, (const uint64_t[]){5}, 1, false));
	expect(&stack, "[unknown] ");
}

/* Chains have the form of /proc/TID/stack: the functions that wait, and the program that looked,
 * are left out. */
static void chains_of_switches(void **state)
{
	static const uint64_t asleep[] = {0xffffffffc0001010, IN(0x5010), IN(0x7010), IN(0x7110),
					  IN(0x1010),	      IN(0x7fff), IN(0x2005)};
	static const uint64_t preempted[] = {IN(0x5010), IN(0x7010), IN(0x5020), IN(0x4005),
					     IN(0x1000)};
	static struct kernel_stack stack;
	struct kernel_symbols without = *(const struct kernel_symbols *)*state;

	assert_true(kernel_stack_of_switch(&stack, *state, asleep, 7));
	expect(&stack, "vfs_read do_syscall_64 ");
	assert_true(kernel_stack_of_switch(&stack, *state, preempted, 5));
	expect(&stack, "flush_smp_call_function_queue asm_sysvec_call_function_single vfs_read ");
	kernel_stack_resume(&stack);
	expect(&stack, "vfs_read ");
	/* no function that waits: not a switch */
	assert_false(kernel_stack_of_switch(&stack, *state, asleep, 2));
	assert_false(kernel_stack_of_switch(&stack, *state, asleep, 0));
	without.sched_from = without.sched_to = 0;
	assert_false(kernel_stack_of_switch(&stack, &without, asleep, 7));
}

static void long_chains_are_cut(void **state)
{
	static struct kernel_stack stack;
	uint64_t chain[200];

	for (size_t i = 0; i < 200; i++)
		chain[i] = IN(0x1010);
	assert_true(kernel_stack_of_chain(&stack, *state, chain, 200, false));
	assert_int_equal(stack.count, KERNEL_FRAMES_MAX);
}

static void preempted(void **state)
{
	static const struct {
		const char *stack, *left;
	} rows[] = {
		{"[<0>] irqentry_exit_to_user_mode+0x1/0x2\n"
		 "[<0>] asm_sysvec_apic_timer_interrupt+0x1a/0x20\n",
		 ""},
		{"[<0>] irqentry_exit+0x1/0x2\n[<0>] asm_sysvec_apic_timer_interrupt+0x1a/0x20\n"
		 "[<0>] vfs_read+0x1/0x2\n[<0>] do_syscall_64+0x1/0x2\n",
		 "vfs_read do_syscall_64 "},
		{"[<0>] __cond_resched+0x1/0x2\n[<0>] handle_mm_fault+0x1/0x2\n"
		 "[<0>] asm_exc_page_fault+0x1/0x2\n",
		 "handle_mm_fault asm_exc_page_fault "},
		{"[<0>] do_notify_resume+0x1/0x2\n[<0>] el0_interrupt+0x1/0x2\n"
		 "[<0>] __el0_irq_handler_common+0x1/0x2\n[<0>] el0t_64_irq_handler+0x1/0x2\n"
		 "[<0>] el0t_64_irq+0x1/0x2\n",
		 ""},
	};
	static struct kernel_stack stack;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		kernel_stack_parse(&stack, rows[i].stack);
		kernel_stack_resume(&stack);
		expect(&stack, rows[i].left);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_by_address),    cmocka_unit_test(chains),
		cmocka_unit_test(long_chains_are_cut), cmocka_unit_test(hidden_addresses),
		cmocka_unit_test(symbols_are_bounded), cmocka_unit_test(preempted),
		cmocka_unit_test(chains_of_switches),
	};

	return cmocka_run_group_tests(tests, open_listed, close_listed);
}
