/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Headers of files as a parser reports them: a service that works, dies, or returns invalid
 * data. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "unwind/file_request.h"
#include "unwind/module_table.h"

#define THIS_PROGRAM "/proc/self/exe"
#define TRIES 100

static size_t service_dies(struct parser_request *request, char answer[PARSER_MESSAGE_MAX])
{
	_exit(EXIT_FAILURE);
}

static size_t service_lies(struct parser_request *request, char answer[PARSER_MESSAGE_MAX])
{
	struct file_head_answer *head = (struct file_head_answer *)answer;
	size_t bytes = file_service(request, answer);

	head->elf.segment_count = UINT32_MAX;
	return bytes;
}

static size_t service_dies_of_code(struct parser_request *request, char answer[PARSER_MESSAGE_MAX])
{
	struct file_request of;

	memcpy(&of, request->bytes, sizeof(of));
	return of.kind == FILE_RETURNS ? service_dies(request, answer)
				       : file_service(request, answer);
}

static size_t service_is_brief(struct parser_request *request, char answer[PARSER_MESSAGE_MAX])
{
	return file_service(request, answer) ? 1 : 0;
}

/* Gets the module of this program from a parser; tries again as often as that is put off. */
static uint32_t module_get(struct module_table *table, unsigned int *put_off)
{
	for (*put_off = 0; *put_off < TRIES; ++*put_off) {
		uint64_t refused = table->refused;
		uint32_t number =
			module_of_file(table, open(THIS_PROGRAM, O_RDONLY), "/program", 1);

		if (table->refused == refused)
			return number;
		assert_int_equal(number, MODULE_NONE);
		assert_int_equal(table->open_count, 0);
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
	return MODULE_NONE;
}

static struct parsers *table_begin(struct module_table *table, parser_service *service)
{
	struct parsers *parsers = parsers_begin(service, true, PARSERS_ALL);

	assert_non_null(parsers);
	module_table_init(table, &parsers->parser[PARSER_TABLES]);
	return parsers;
}

static struct module_table table;

static void headers_are_as_read_here(void **state)
{
	struct parsers *parsers = table_begin(&table, file_service);
	int fd = open(THIS_PROGRAM, O_RDONLY);
	const struct module *module;
	unsigned int put_off;
	struct elf_file elf;
	struct stat file;

	assert_int_equal(fstat(fd, &file), 0);
	assert_int_equal(elf_file_read(&elf, fd, NULL, (uint64_t)file.st_size), 0);
	assert_int_equal(module_get(&table, &put_off), 0);
	assert_int_equal(put_off, 0);
	module = table.modules[0];
	assert_ptr_equal(module->elf.image, NULL);
	assert_int_equal(module->elf.fd, module->fd);
	assert_int_equal(module->elf.bytes, elf.bytes);
	assert_false(module->elf.narrow);
	assert_int_equal(module->elf.machine, elf.machine);
	assert_true(elf.segment_count > 1);
	assert_int_equal(module->elf.segment_count, elf.segment_count);
	assert_memory_equal(module->elf.segments, elf.segments,
			    elf.segment_count * sizeof(elf.segments[0]));
	assert_memory_equal(module->elf.build_id, elf.build_id, elf.build_id_bytes);
	close(fd);
	module_table_clear(&table);
	parsers_end(parsers);
}

/* A file that ends parsers is not used: the first two times that a parser died of it, a later one
 * was to try; the third time none is. */
static void a_file_that_ends_parsers_is_none_of_code(void **state)
{
	struct parsers *parsers = table_begin(&table, service_dies);
	unsigned int put_off;

	assert_int_equal(module_get(&table, &put_off), MODULE_NONE);
	assert_true(put_off >= 1 && put_off < TRIES);
	assert_int_equal(parsers_lost(parsers), FILE_ENDS_MAX);
	assert_int_equal(module_get(&table, &put_off), MODULE_NONE);
	assert_int_equal(put_off, 0);
	assert_int_equal(parsers_lost(parsers), FILE_ENDS_MAX);
	module_table_clear(&table);
	parsers_end(parsers);
}

static void expect_no_code(parser_service *service)
{
	struct parsers *parsers = table_begin(&table, service);
	unsigned int put_off;

	assert_int_equal(module_get(&table, &put_off), MODULE_NONE);
	assert_int_equal(put_off, 0);
	module_table_clear(&table);
	parsers_end(parsers);
}

static void lies_are_not_believed(void **state)
{
	expect_no_code(service_lies);
	expect_no_code(service_is_brief);
}

/* Returns the address of a function of this program, as in its file. */
static uint64_t address_of_code(const struct elf_file *elf)
{
	extern const char __executable_start[];

	return elf->segments[0].address - elf->segments[0].offset +
	       ((uintptr_t)service_dies_of_code - (uintptr_t)__executable_start);
}

static void code_is_followed_by_a_parser(void **state)
{
	struct parsers *parsers = table_begin(&table, file_service);
	struct x86_return here[X86_RETURNS_MAX];
	struct file_returns_answer answer;
	const struct elf_file *elf;
	unsigned int put_off;

	assert_int_equal(module_get(&table, &put_off), 0);
	elf = &table.modules[0]->elf;
	assert_int_equal(
		module_returns(&table, table.modules[0], address_of_code(elf), true, &answer), 0);
	assert_int_equal(answer.count, x86_returns_find(elf, address_of_code(elf), true, here));
#ifdef __x86_64__
	assert_true(answer.count > 0);
#endif
	for (size_t i = 0; i < answer.count; i++) {
		assert_int_equal(answer.returns[i].offset, here[i].offset);
		assert_int_equal(answer.returns[i].base, here[i].base);
		assert_int_equal(answer.returns[i].called, here[i].called);
		assert_memory_equal(answer.returns[i].saved, here[i].saved, sizeof(here[i].saved));
	}
	module_table_clear(&table);
	parsers_end(parsers);
}

static void code_that_ends_parsers_is_not_followed(void **state)
{
	struct parsers *parsers = table_begin(&table, service_dies_of_code);
	struct file_returns_answer answer;
	unsigned int put_off;
	int err = -EAGAIN;

	assert_int_equal(module_get(&table, &put_off), 0);
	for (int i = 0; err == -EAGAIN && i < TRIES; i++) {
		err = module_returns(&table, table.modules[0], 0, true, &answer);
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
	assert_int_equal(err, -EPIPE);
	assert_int_equal(module_returns(&table, table.modules[0], 0, true, &answer), -ECHILD);
	assert_int_equal(parsers_lost(parsers), FILE_ENDS_MAX);
	module_table_clear(&table);
	parsers_end(parsers);
}

/* Without parsers no header is read: code counts as it lies in the file. */
static void without_parsers_no_header_is_read(void **state)
{
	unsigned int put_off;
	uint64_t address = 0;

	module_table_init(&table, NULL);
	assert_int_equal(module_get(&table, &put_off), 0);
	assert_int_equal(table.modules[0]->elf.segment_count, 1);
	assert_int_equal(table.modules[0]->elf.build_id_bytes, 0);
	assert_true(elf_address_of(&table.modules[0]->elf, 0x123, &address));
	assert_int_equal(address, 0x123);
	module_table_clear(&table);
}

/* A tsnap whose maps become larger begins anew with the same table. */
static void what_was_cleared_is_read_again(void **state)
{
	unsigned int put_off;

	module_table_init(&table, NULL);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(module_get(&table, &put_off), 0);
		assert_int_equal(table.count, 1);
		module_table_clear(&table);
		assert_ptr_equal(table.modules[0], NULL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers_are_as_read_here),
		cmocka_unit_test(a_file_that_ends_parsers_is_none_of_code),
		cmocka_unit_test(lies_are_not_believed),
		cmocka_unit_test(without_parsers_no_header_is_read),
		cmocka_unit_test(code_is_followed_by_a_parser),
		cmocka_unit_test(code_that_ends_parsers_is_not_followed),
		cmocka_unit_test(what_was_cleared_is_read_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
