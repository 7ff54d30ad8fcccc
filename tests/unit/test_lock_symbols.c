/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Symbols that tell the kernel's locks. */
#include "kernel/lock_symbols.h"
#include "unit.h"

static void path_write(char path[], const char *text)
{
	FILE *file = fdopen(mkstemp(path), "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

/* Static data of the kernel and of modules is found by its exact address, functions are not. */
static void names_locks(void **state)
{
	char path[] = "/tmp/tsnap-lock-symbols-XXXXXX";
	struct lock_symbols symbols = {0};

	(void)state;
	path_write(path, "ffffffff813dfec0 t percpu_rwsem_wake_function\n"
			 "ffffffff821fff50 T percpu_down_write\n"
			 "ffffffff82200060 T percpu_is_write_locked\n"
			 "ffffffff82e0c1a0 D __per_cpu_offset\n"
			 "ffffffff82f0c1a0 d rtnl_mutex\n"
			 "ffffffffc0201040 b card_mutex\t[snd]\n");
	lock_symbols_read(&symbols, path);
	unlink(path);
	assert_string_equal(lock_symbol_find(&symbols, 0xffffffff82f0c1a0), "rtnl_mutex");
	assert_string_equal(lock_symbol_find(&symbols, 0xffffffffc0201040), "card_mutex");
	assert_null(lock_symbol_find(&symbols, 0xffffffff82f0c1a8));
	assert_null(lock_symbol_find(&symbols, 0xffffffff821fff50));
	assert_true(symbols.wake == 0xffffffff813dfec0);
	assert_true(symbols.write == 0xffffffff821fff50);
	assert_true(symbols.write_end == 0xffffffff82200060);
	assert_true(symbols.cpu_offsets == 0xffffffff82e0c1a0);
	lock_symbols_done(&symbols);
}

/* A kernel that hides addresses shows none. */
static void knows_no_zeros(void **state)
{
	char path[] = "/tmp/tsnap-lock-symbols-XXXXXX";
	struct lock_symbols symbols = {0};

	(void)state;
	path_write(path, "0000000000000000 d rtnl_mutex\n"
			 "0000000000000000 t percpu_rwsem_wake_function\n");
	lock_symbols_read(&symbols, path);
	unlink(path);
	assert_null(lock_symbol_find(&symbols, 0));
	assert_true(!symbols.wake);
	lock_symbols_done(&symbols);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_locks),
		cmocka_unit_test(knows_no_zeros),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
