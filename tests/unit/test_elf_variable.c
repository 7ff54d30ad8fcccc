/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Variables of files by name: this program's own, and those of the C library. */
#include "unit.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unwind/elf/elf_variable.h"

uint32_t variable_of_test = 7;
__thread uint64_t variable_of_thread = 8;
__thread _Alignas(256) char variable_aligned[3] = "a";

static struct elf_file opened(const char *path)
{
	int fd = open(path, O_RDONLY);
	struct elf_file elf;
	struct stat stat;

	assert_true(fd >= 0 && !fstat(fd, &stat));
	assert_int_equal(elf_file_read(&elf, fd, NULL, (uint64_t)stat.st_size), 0);
	return elf;
}

static int distance_take(struct dl_phdr_info *info, size_t size, void *to)
{
	*(uint64_t *)to = info->dlpi_addr; /* the first is the program's */
	return 1;
}

static void of_the_program(void **state)
{
	struct elf_file elf = opened("/proc/self/exe");
	struct elf_variable variable;
	uint64_t distance = 0;
	char *pointer = __builtin_thread_pointer();

	dl_iterate_phdr(distance_take, &distance);
	elf_variable_find(&elf, "variable_of_test", false, &variable);
	assert_true(variable.found && !variable.thread_local_storage);
	assert_true(variable.bytes >= 4); /* a sanitizer makes it longer */
	assert_ptr_equal((void *)(variable.address + distance), &variable_of_test);
	elf_variable_find(&elf, "variable_of_thread", false, &variable);
	assert_true(variable.found && variable.thread_local_storage);
	assert_ptr_equal(pointer + variable.block_at + variable.address, &variable_of_thread);
	elf_variable_find(&elf, "variable_aligned", false, &variable);
	assert_ptr_equal(pointer + variable.block_at + variable.address, variable_aligned);
	elf_variable_find(&elf, "variable_of_tes", false, &variable);
	assert_false(variable.found);
	elf_variable_find(&elf, "main", false, &variable);
	assert_false(variable.found);
	close(elf.fd);
}

/* The C library's errno is an initial-exec variable that it does not export by that name. */
static void of_a_library(void **state)
{
	struct link_map *map;
	Dl_info info;
	struct elf_file elf;
	struct elf_variable variable;
	int64_t at;

	assert_true(dladdr1((void *)close, &info, (void **)&map, RTLD_DL_LINKMAP));
	elf = opened(info.dli_fname);
	elf_variable_find(&elf, "errno", false, &variable);
	if (!variable.found) /* stripped, and not exported */
		skip();
	assert_true(variable.thread_local_storage);
	assert_int_equal(variable.slot_kind, SLOT_OFFSET);
	at = *(const int64_t *)(map->l_addr + variable.slot) + variable.from_slot;
	assert_ptr_equal((char *)__builtin_thread_pointer() + at, &errno);
	close(elf.fd);
}

#ifdef ARM64_LIBRARIES
/* Libraries of another CPU, built for this: the words that their relocations name are in the table
 * that the dynamic linker fills. */
static void of_arm64(void **state)
{
	static const struct {
		const char *option;
		uint32_t kind;
	} ways[] = {{"-ftls-model=initial-exec", SLOT_OFFSET},
		    {"-mtls-dialect=trad", SLOT_PAIR},
		    {"-mtls-dialect=desc", SLOT_DESCRIPTOR},
		    {"-DBARE", SLOT_NONE}};
	struct elf_variable variable;
	struct elf_section table;
	char path[4096];

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		struct elf_file elf;

		snprintf(path, sizeof(path), ARM64_LIBRARIES "%s.so", ways[i].option);
		elf = opened(path);
		elf_variable_find(&elf, "otel_thread_ctx_v1", true, &variable);
		assert_true(variable.found && variable.thread_local_storage);
		assert_int_equal(variable.address, 0);
		assert_int_equal(variable.bytes, 8);
		assert_int_equal(variable.block_at, 16); /* behind two words of the thread */
		assert_int_equal(variable.slot_kind, ways[i].kind);
		assert_int_equal(variable.from_slot, 0);
		if (ways[i].kind) {
			assert_false(elf_file_section(&elf,
						      ways[i].kind == SLOT_DESCRIPTOR ? ".got.plt"
										      : ".got",
						      &table) &&
				     elf_file_section(&elf, ".got", &table));
			assert_true(variable.slot >= table.address &&
				    variable.slot + 8 <= table.address + table.bytes);
		}
		close(elf.fd);
	}
}
#endif

static void nearest(void **state)
{
	struct elf_file elf = opened("/proc/self/exe");
	char name[VARIABLE_NAME_BYTES];

	elf_variable_nearest(&elf, "variable_of_tset", name);
	assert_string_equal(name, "variable_of_test");
	elf_variable_nearest(&elf, "qqqqqqqqqqqqqqqqqqqqq", name);
	assert_string_equal(name, "");
	close(elf.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(of_the_program),
		cmocka_unit_test(of_a_library),
#ifdef ARM64_LIBRARIES
		cmocka_unit_test(of_arm64),
#endif
		cmocka_unit_test(nearest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
