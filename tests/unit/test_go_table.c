/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Names of functions of stripped programs of Go: tests/fuzz/corpus_elf has two functions, main.wait
 * at 0x200 and runtime.mcall at 0x240, in each layout. tests/stack has programs that Go made. */
#include <fcntl.h>
#include <sys/stat.h>

#include "unwind/elf/elf_symbols.h"
#include "unwind/elf/go_program.h"
#include "unit.h"

#define FILE_BYTES 0x1000
#define TABLE_AT 0x400

static char image[FILE_BYTES];

static struct elf_file file_read(const char *name)
{
	struct elf_file elf;
	char path[512];
	int fd;

	snprintf(path, sizeof(path), FIXTURES "/../fuzz/corpus_elf/%s", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, image, sizeof(image)), sizeof(image));
	close(fd);
	assert_int_equal(elf_file_read(&elf, -1, image, sizeof(image)), 0);
	return elf;
}

static bool name_is(const struct elf_symbols *symbols, uint64_t address, const char *expected)
{
	char name[32];

	return elf_symbol_name(symbols, address, name, sizeof(name)) && !strcmp(name, expected);
}

static void names_are_found(void **state)
{
	static const char *const files[] = {"go_fffffffb", "go_fffffffa",  "go_fffffff0",
					    "go_fffffff1", "go_relocated", "go_merged"};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		struct elf_symbols symbols = {.source_count = 0};
		struct elf_file elf = file_read(files[i]);
		struct go_end ends[GO_ENDS_MAX];
		struct go_table table;
		char name[6];

		elf_symbols_add(&symbols, &elf);
		elf_symbols_sort(&symbols);
		assert_int_equal(symbols.table.count, 2);
		assert_true(name_is(&symbols, 0x200, "main.wait"));
		assert_true(name_is(&symbols, 0x23f, "main.wait"));
		assert_true(name_is(&symbols, 0x27f, "runtime.mcall"));
		assert_false(name_is(&symbols, 0x280, "runtime.mcall"));
		assert_false(name_is(&symbols, 0x1ff, "main.wait"));
		assert_true(elf_symbol_name(&symbols, 0x200, name, sizeof(name)));
		assert_string_equal(name, "main.");
		elf_symbols_done(&symbols);

		assert_int_equal(go_table_read(&table, &elf), 0);
		assert_int_equal(go_table_ends(&table, &elf, ends), 1);
		assert_int_equal(ends[0].from, 0x240);
		assert_int_equal(ends[0].to, 0x280);
		assert_false(ends[0].may_return);
	}
}

static void number_put(size_t at, uint64_t number, size_t bytes)
{
	memcpy(image + TABLE_AT + at, &number, bytes);
}

/* Head of Go 1.18: eight words at 8, of which the third is the address where code begins; the list
 * at 0x80, the records, whose second number is the name's offset, at 0x98. */
static void bad_tables_tell_nothing(void **state)
{
	static const struct {
		size_t at;
		uint64_t number;
		size_t bytes;
		int err;
	} damages[] = {
		{0, 0xfffffff2, 4, -EBADMSG},
		{4, 1, 1, -EBADMSG},
		{6, 3, 1, -EBADMSG},
		{7, 16, 1, -EBADMSG},
		{8, 0, 8, -EBADMSG},
		{8, UINT64_MAX, 8, -EBADMSG},
		{8 + 3 * 8, 0x1000, 8, -EBADMSG},
		{8 + 7 * 8, UINT64_MAX, 8, -EBADMSG},
		{0x84, UINT32_MAX, 4, 0},
		{0x84, 0x1000, 4, 0},
		{0x9c, UINT32_MAX, 4, 0},
		{0x9c, 0x1000, 4, 0},
	};

	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		struct elf_symbols symbols = {.source_count = 0};
		struct elf_file elf = file_read("go_fffffff0");
		struct go_end ends[GO_ENDS_MAX];
		struct go_table table;

		number_put(damages[i].at, damages[i].number, damages[i].bytes);
		assert_int_equal(go_table_read(&table, &elf), damages[i].err);
		elf_symbols_add(&symbols, &elf);
		elf_symbols_sort(&symbols);
		assert_false(name_is(&symbols, 0x200, "main.wait"));
		if (!damages[i].err)
			assert_int_equal(go_table_ends(&table, &elf, ends), 1);
		elf_symbols_done(&symbols);
	}
}

/* The section of code begins where functions fill it, if the head does not say where. */
static void code_begins_where_it_is_filled(void **state)
{
	struct elf_file elf = file_read("go_fffffff0");
	struct go_table table;

	number_put(8 + 2 * 8, 0, 8);
	assert_int_equal(go_table_read(&table, &elf), 0);
	assert_int_equal(table.text, 0x200);
	number_put(0x80 + 2 * 8, 0x70, 4);
	assert_int_equal(go_table_read(&table, &elf), -EBADMSG);
}

/* The fifth number of a record, here where the next one begins, is the offset of its steps, here
 * after the names. They say that the stack is 0 deep for 4 bytes, 24 for 32 more, 8 for the
 * rest. */
#define STEPS_AT 0x79
#define STEPS_PLACE 25 /* counted from 0x60 */
#define RECORD_STEPS_AT (0x98 + 16)

static void depths_are_found(void **state)
{
	static const uint8_t steps[] = {2, 4, 48, 32, 31, 28, 0};
	static const struct {
		uint64_t address;
		int32_t depth;
	} expected[] = {{0x200, 0}, {0x203, 0}, {0x204, 24}, {0x223, 24}, {0x224, 8}, {0x23f, 8}};
	struct elf_file elf = file_read("go_fffffff0");
	struct go_function function;
	struct go_table table;

	memcpy(image + TABLE_AT + STEPS_AT, steps, sizeof(steps));
	number_put(RECORD_STEPS_AT, STEPS_PLACE, 4);
	assert_int_equal(go_table_read(&table, &elf), 0);
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		assert_true(go_table_find(&table, &elf, expected[i].address, &function));
		assert_int_equal(function.from, 0x200);
		assert_int_equal(function.to, 0x240);
		assert_int_equal(go_table_depth(&table, &elf, &function, expected[i].address),
				 expected[i].depth);
	}
	assert_false(go_table_find(&table, &elf, 0x1ff, &function));
	assert_false(go_table_find(&table, &elf, 0x280, &function));
	/* steps that end too early, and no steps */
	image[TABLE_AT + STEPS_AT + 4] = 0;
	assert_true(go_table_find(&table, &elf, 0x224, &function));
	assert_int_equal(go_table_depth(&table, &elf, &function, 0x224), -1);
	number_put(RECORD_STEPS_AT, 0, 4);
	assert_int_equal(go_table_depth(&table, &elf, &function, 0x200), -1);
	number_put(RECORD_STEPS_AT, UINT32_MAX, 4);
	assert_int_equal(go_table_depth(&table, &elf, &function, 0x200), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_found),
		cmocka_unit_test(depths_are_found),
		cmocka_unit_test(bad_tables_tell_nothing),
		cmocka_unit_test(code_begins_where_it_is_filled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
