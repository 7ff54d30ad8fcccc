/* SPDX-License-Identifier: GPL-2.0-or-later */
/* unwind/elf/elf_probe: notes of USDT probes, of a program whose one probe (probed:step) is at
 * 0x4000b6, with a semaphore at 0x4000ec: tests/fuzz/corpus_elf/usdt */
#include "unit.h"
#include "unwind/elf/elf_probe.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define ADDRESS 0x400000ull
#define SITE 0xb6ull /* from there on */
#define SEMAPHORE 0xecull
#define BASE 0xb9ull

static char image[4096];
static struct elf_usdt usdt;

static struct elf_file file_read(void)
{
	int fd = open(FIXTURES "/../fuzz/corpus_elf/usdt", O_RDONLY | O_CLOEXEC);
	ssize_t bytes = read(fd, image, sizeof(image));
	struct elf_file elf;

	assert_true(bytes > 0 && (size_t)bytes < sizeof(image));
	close(fd);
	assert_int_equal(elf_file_read(&elf, -1, image, (uint64_t)bytes), 0);
	return elf;
}

/* Returns the offset in the file of what is at that address. */
static uint64_t offset_of(const struct elf_file *elf, uint64_t address)
{
	uint64_t offset, left;

	assert_true(elf_offset_of(elf, address, &offset, &left));
	return offset;
}

static void test_found(void **state)
{
	const struct elf_file elf = file_read();
	const struct usdt_operand *operands = usdt.sites[0].arguments;

	elf_usdt_find(&elf, "", "step", &usdt);
	assert_int_equal(usdt.site_count, 1);
	assert_string_equal(usdt.provider, "probed");
	assert_string_equal(usdt.other, "");
	assert_false(usdt.misplaced || usdt.more || usdt.narrow);
	assert_int_equal(usdt.sites[0].offset, offset_of(&elf, ADDRESS + SITE));
	assert_int_equal(usdt.sites[0].semaphore, offset_of(&elf, ADDRESS + SEMAPHORE));
	assert_int_equal(usdt.sites[0].argument_count, 3);
	assert_string_equal(usdt.arguments, "-4@%eax 8@name(%rip) -8@$-7");
	assert_int_equal(operands[0].place, USDT_REGISTER);
	assert_int_equal(operands[2].offset, -7);
	assert_int_equal(operands[1].place, USDT_MEMORY);
	assert_int_equal(operands[1].base, USDT_X86_IP);
	assert_true(operands[1].offset > 0 && operands[1].offset < 0x1000);
}

static void test_names(void **state)
{
	const struct elf_file elf = file_read();

	elf_usdt_find(&elf, "probed", "step", &usdt);
	assert_int_equal(usdt.site_count, 1);
	elf_usdt_find(&elf, "other", "step", &usdt);
	assert_int_equal(usdt.site_count, 0);
	assert_true(usdt.any);
	elf_usdt_find(&elf, "", "stap", &usdt);
	assert_int_equal(usdt.site_count, 0);
	assert_string_equal(usdt.nearest, "step");
}

/* prelink(8) moves a program and not its notes: .stapsdt.base says how far. */
static void test_moved(void **state)
{
	struct elf_file elf = file_read();
	const uint64_t base = ADDRESS + BASE, moved = base - 4;
	char *at = image;

	/* in the section's header, which is behind the sections; in the note the base stays */
	at = memmem(image + elf.sections_offset, sizeof(image) - elf.sections_offset, &base,
		    sizeof(base));
	assert_non_null(at);
	memcpy(at, &moved, sizeof(moved));
	elf_usdt_find(&elf, "", "step", &usdt);
	assert_int_equal(usdt.site_count, 1);
	assert_int_equal(usdt.sites[0].offset, offset_of(&elf, ADDRESS + SITE - 4));
	assert_int_equal(usdt.sites[0].semaphore, offset_of(&elf, ADDRESS + SEMAPHORE - 4));
}

/* A note whose probe is outside of the code is told as such. */
static void test_misplaced(void **state)
{
	const struct elf_file elf = file_read();
	const uint64_t site = ADDRESS + SITE, wrong = 0x700000;
	char *at = memmem(image, sizeof(image), &site, sizeof(site));

	assert_non_null(at);
	memcpy(at, &wrong, sizeof(wrong));
	elf_usdt_find(&elf, "", "step", &usdt);
	assert_true(usdt.misplaced);
}

static void test_function(void **state)
{
	const struct elf_file elf = file_read();
	struct elf_function function;

	elf_function_find(&elf, "_start", &function);
	assert_true(function.found && function.in_code && function.any);
	assert_false(function.indirect || function.go || function.throws || function.narrow);
	elf_function_find(&elf, "_star", &function);
	assert_false(function.found);
	assert_string_equal(function.nearest, "_start");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_found),	 cmocka_unit_test(test_names),
		cmocka_unit_test(test_moved),	 cmocka_unit_test(test_misplaced),
		cmocka_unit_test(test_function),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
