/* SPDX-License-Identifier: GPL-2.0-or-later */
/* From frames to words: functions, names, kernel stacks, the dictionary. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/names.h"
#include "stack/demangle.h"
#include "stack/perf_map.h"
#include "stack/stack_table.h"
#include "unit.h"

static void kernel_stacks_are_parsed(void **state)
{
	static struct kernel_stack stack;
	char deep[8192] = "";

	(void)state;
	kernel_stack_parse(&stack, "[<0>] do_nanosleep+0x69/0x180\n[<0>] x.isra.0+0x1/0x2\n"
				   "[<ffffffff8101>] old_one+0x1/0x2 [ext4]\n"
				   "[<ffffffffffffffff>] 0xffffffffffffffff\n");
	assert_int_equal(stack.count, 3);
	assert_string_equal(stack.names[0], "do_nanosleep");
	assert_string_equal(stack.names[1], "x.isra.0");
	assert_string_equal(stack.names[2], "old_one");
	kernel_stack_parse(&stack, "");
	assert_int_equal(stack.count, 0);
	kernel_stack_parse(&stack, "]\n] \n[<0>] +\n[<0>]\nx");
	assert_int_equal(stack.count, 0);
	for (int i = 0; i < 100; i++)
		strcat(deep, "[<0>] f+0x1/0x2\n");
	kernel_stack_parse(&stack, deep);
	assert_int_equal(stack.count, KERNEL_FRAMES_MAX);
}

static void symbols_are_found(void **state)
{
	struct symbol_table table = {.count = 0};

	(void)state;
	symbol_table_sort(&table, false);
	assert_null(symbol_find(&table, 1));
	symbol_add(&table, 0x200, 0x10, 2, 0, 5);
	symbol_add(&table, 0x100, 0x50, 0, 0, 1);
	symbol_add(&table, 0x200, 0x10, 1, 1, 7);
	symbol_add(&table, 0x120, 0x8, 0, 0, 2); /* within another */
	symbol_add(&table, 0x300, 0, 0, 0, 3);	 /* of unknown size */
	symbol_table_sort(&table, false);
	assert_int_equal(table.count, 4);
	assert_null(symbol_find(&table, 0xff));
	assert_int_equal(symbol_place(symbol_find(&table, 0x124)), 2);
	assert_int_equal(symbol_place(symbol_find(&table, 0x130)), 1);
	assert_null(symbol_find(&table, 0x150));
	assert_int_equal(symbol_place(symbol_find(&table, 0x20f)), 7);
	assert_int_equal(symbol_source(symbol_find(&table, 0x20f)), 1);
	assert_null(symbol_find(&table, 0x210));
	assert_int_equal(symbol_place(symbol_find(&table, 0x30000)), 3);
	/* a JIT's newest function counts */
	symbol_add(&table, 0x120, 0x8, 0, 0, 9);
	symbol_table_sort(&table, true);
	assert_int_equal(symbol_place(symbol_find(&table, 0x124)), 9);
	symbol_add(&table, 1ull << 60, 1, 0, 0, 1);
	symbol_add(&table, 1, 1, 0, 0, 1u << 30);
	assert_int_equal(table.refused, 2);
	symbol_table_done(&table);
}

static void maps_of_jits(void **state)
{
	struct perf_map map = {.fd = memfd_create("map", MFD_CLOEXEC)};
	const char text[] = "1000 20 one\n0x2000 0x10 two words\nnonsense\n3000 0 empty\n400";
	char name[16];

	(void)state;
	assert_true(map.fd >= 0);
	assert_int_equal(write(map.fd, text, strlen(text)), strlen(text));
	perf_map_read(&map);
	assert_int_equal(map.table.count, 2);
	assert_true(perf_map_name(&map, 0x101f, name, sizeof(name)));
	assert_string_equal(name, "one");
	assert_true(perf_map_name(&map, 0x2000, name, sizeof(name)));
	assert_string_equal(name, "two words");
	assert_false(perf_map_name(&map, 0x1020, name, sizeof(name)));
	/* the rest of its last line, and a newer function in the place of an older */
	assert_int_equal(write(map.fd, "0 10 four\n1000 20 anew\n", 23), 23);
	perf_map_read(&map);
	assert_true(perf_map_name(&map, 0x4001, name, sizeof(name)));
	assert_string_equal(name, "four");
	assert_true(perf_map_name(&map, 0x1000, name, sizeof(name)));
	assert_string_equal(name, "anew");
	perf_map_done(&map);
}

/* Of a file that was put there by somebody else, or is none, nothing is read. */
static void maps_of_strangers(void **state)
{
	char path[64];
	struct perf_map map;
	int fd;

	(void)state;
	if (geteuid())
		skip();
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	unlink(path);
	assert_int_equal(perf_map_open(&map, "/proc", getpid(), 0), -ENOENT);
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0644);
	assert_true(fd >= 0);
	assert_int_equal(perf_map_open(&map, "/proc", getpid(), 0), 0);
	perf_map_done(&map);
	assert_int_equal(fchown(fd, 4711, 4711), 0);
	assert_int_equal(perf_map_open(&map, "/proc", getpid(), 0), -EPERM);
	assert_int_equal(perf_map_open(&map, "/proc", getpid(), 4711), 0);
	perf_map_done(&map);
	close(fd);
	unlink(path);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_true(perf_map_open(&map, "/proc", getpid(), 0) < 0);
	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_true(perf_map_open(&map, "/proc", getpid(), 0) < 0);
	unlink(path);
}

static void names_are_demangled(void **state)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char bomb[1024], text[64];

	(void)state;
	if (!name_demangle("_Z3foov", text, sizeof(text)))
		skip(); /* built without libiberty */
	assert_string_equal(text, "foo");
	assert_true(name_demangle("_ZN4shop3boxIiE4waitEi", text, sizeof(text)));
	assert_string_equal(text, "shop::box<int>::wait");
	assert_true(name_demangle("_ZN4core3fmt5write17h0123456789abcdefE", text, sizeof(text)));
	assert_string_equal(text, "core::fmt::write");
	assert_true(name_demangle("_RNvC6_123foo3bar", text, sizeof(text)));
	assert_false(name_demangle("main", text, sizeof(text)));
	assert_false(name_demangle("_Z", text, sizeof(text)));
	/* each argument is a pair of the one before, twice: 2^30 letters */
	strcpy(bomb, "_Z1fISt4pairI1xS0_E");
	for (int i = 1; i < 30; i++)
		sprintf(bomb + strlen(bomb), "S_IS%c_S%c_E", digits[i], digits[i]);
	strcat(bomb, "EvT28_");
	assert_true(name_demangle(bomb, text, sizeof(text)));
	assert_int_equal(strlen(text), sizeof(text) - 1);
}

struct dictionary {
	struct module_table modules;
	struct stack_names *names;
	struct stack_table table;
};

static int dictionary_open(void **state)
{
	struct dictionary *dictionary = calloc(1, sizeof(*dictionary));

	assert_non_null(dictionary);
	module_table_init(&dictionary->modules);
	dictionary->names = stack_names_new("/proc", &dictionary->modules);
	stack_table_init(&dictionary->table, &dictionary->modules, dictionary->names);
	*state = dictionary;
	return 0;
}

static int dictionary_close(void **state)
{
	struct dictionary *dictionary = *state;

	stack_table_clear(&dictionary->table);
	stack_names_free(dictionary->names);
	module_table_clear(&dictionary->modules);
	free(dictionary);
	names_clear();
	return 0;
}

/* Stacks come without end, and their words with them: they are lent, not kept. */
static void assert_lent(struct stack_words words)
{
	assert_ptr_not_equal(name_of_string(words.function), words.function);
	assert_ptr_not_equal(name_of_string(words.path), words.path);
	assert_ptr_not_equal(name_of_string(words.folded), words.folded);
}

static void kernel_words(void **state)
{
	static struct kernel_stack stack;
	struct dictionary *dictionary = *state;
	struct stack_words words;
	uint32_t number;

	kernel_stack_parse(&stack, "[<0>] schedule+0x1/0x2\n[<0>] io_schedule+0x1/0x2\n"
				   "[<0>] folio_wait+0x1/0x2\n[<0>] filemap_fault+0x1/0x2\n"
				   "[<0>] do_syscall_64+0x1/0x2\n"
				   "[<0>] entry_SYSCALL_64_after_hwframe+0x1/0x2\n");
	number = stack_of_kernel(&dictionary->table, &stack);
	assert_int_equal(stack_of_kernel(&dictionary->table, &stack), number);
	words = stack_table_words(&dictionary->table, number, true);
	assert_lent(words);
	assert_string_equal(words.function, "folio_wait");
	assert_string_equal(words.path, "filemap_fault>folio_wait");
	assert_string_equal(words.folded,
			    "entry_SYSCALL_64_after_hwframe_[k];do_syscall_64_[k];"
			    "filemap_fault_[k];folio_wait_[k];io_schedule_[k];schedule_[k]");
	/* nothing but the scheduler: then that */
	kernel_stack_parse(&stack, "[<0>] schedule+0x1/0x2\n[<0>] ret_from_fork+0x1/0x2\n");
	number = stack_of_kernel(&dictionary->table, &stack);
	words = stack_table_words(&dictionary->table, number, false);
	assert_string_equal(words.function, "schedule");
	stack.count = 0;
	assert_int_equal(stack_of_kernel(&dictionary->table, &stack), STACK_NONE);
}

/* This program's own functions, by a thread of its own; what is in none shows its place. */
static void user_words(void **state)
{
	static struct stack_walk walk;
	struct dictionary *dictionary = *state;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	uint32_t module = module_of_file(&dictionary->modules, fd, "/x/program;1", getpid());
	struct frame_view view;
	struct elf_file *elf;
	uint64_t address;
	uint32_t frame;
	FILE *symbols;
	char line[256];

	assert_int_not_equal(module, MODULE_NONE);
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_int_equal(module_of_file(&dictionary->modules, fd, "/y", getpid()), module);
	elf = &dictionary->modules.modules[module]->elf;
	symbols = fopen("/proc/self/maps", "re");
	assert_non_null(symbols);
	address = 0;
	while (fgets(line, sizeof(line), symbols)) {
		struct mapping mapping;
		uintptr_t here = (uintptr_t)kernel_words;
		char *path;

		if (mapping_parse(line, &mapping, &path) && here >= mapping.start &&
		    here < mapping.end)
			assert_true(elf_address_of(elf, here - mapping.start + mapping.offset,
						   &address));
	}
	fclose(symbols);
	frame = stack_names_frame(dictionary->names, &(struct frame){module, address});
	assert_int_equal(stack_names_frame(dictionary->names, &(struct frame){module, address}),
			 frame);
	view = stack_names_get(dictionary->names, frame);
	assert_false(view.final);
	assert_non_null(strstr(view.name, "program:1+0x"));
	assert_true(stack_names_wait(dictionary->names, clock_monotonic_ns() + 20 * NS_PER_SECOND));
	view = stack_names_get(dictionary->names, frame);
	assert_true(view.final);
	assert_string_equal(view.name, "kernel_words");
	assert_int_equal(view.kind, FRAME_PROGRAM);
	/* a walk of it that was not whole */
	walk.count = 2;
	walk.end = WALK_LOST;
	walk.frames[0] = (struct frame){module, address};
	walk.frames[1] = (struct frame){MODULE_NONE, 0x1234};
	assert_string_equal(stack_table_words(&dictionary->table,
					      stack_of_walk(&dictionary->table, &walk), true)
				    .folded,
			    "[lost];[?]+0x1234_[j];kernel_words");
	stack_names_clear(dictionary->names);
	assert_int_equal(stack_names_frame(dictionary->names, &(struct frame){module, 1}), 0);
}

#define WITH(test) cmocka_unit_test_setup_teardown(test, dictionary_open, dictionary_close)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernel_stacks_are_parsed),
		cmocka_unit_test(symbols_are_found),
		cmocka_unit_test(maps_of_jits),
		cmocka_unit_test(maps_of_strangers),
		cmocka_unit_test(names_are_demangled),
		WITH(kernel_words),
		WITH(user_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
