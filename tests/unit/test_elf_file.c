/* SPDX-License-Identifier: GPL-2.0-or-later */
/* ELF files of both widths: what their segments say */
#include "unit.h"
#include "unwind/elf/elf_file.h"

#include <errno.h>
#include <string.h>

#define PAGE 0x1000u

/* A file of 32 bits with a segment of data and one of code. */
static struct narrow_file {
	Elf32_Ehdr header;
	Elf32_Phdr segments[2];
	char rest[3 * PAGE];
} narrow_file = {
	.header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB, EV_CURRENT},
		   .e_type = ET_DYN,
		   .e_machine = EM_386,
		   .e_version = EV_CURRENT,
		   .e_phoff = offsetof(struct narrow_file, segments),
		   .e_phentsize = sizeof(Elf32_Phdr),
		   .e_phnum = 2},
	.segments = {{.p_type = PT_LOAD, .p_filesz = PAGE, .p_memsz = PAGE, .p_flags = PF_R},
		     {.p_type = PT_LOAD,
		      .p_offset = PAGE,
		      .p_vaddr = PAGE,
		      .p_filesz = PAGE,
		      .p_memsz = PAGE,
		      .p_flags = PF_R | PF_X}},
};

static void code_of_narrow_files_is_known(void **state)
{
	const struct elf_pages data = {0xf7000000, 0xf7000000 + PAGE, 0, false};
	struct elf_pages code = {0xf7000000 + PAGE, 0xf7000000 + 2 * PAGE, 0, true};
	struct elf_file elf;

	assert_int_equal(elf_file_read(&elf, -1, (const char *)&narrow_file, sizeof(narrow_file)),
			 0);
	assert_int_equal(elf.segment_count, 2);
	assert_false(elf.segments[0].executable);
	assert_true(elf.segments[1].executable);
	assert_true(elf_place_code(&elf, &data, &code));
	assert_int_equal(code.offset, PAGE);
}

static void other_files_are_refused(void **state)
{
	static const char bytes[64] = "no ELF file";
	struct elf_file elf;

	assert_int_equal(elf_file_read(&elf, -1, bytes, sizeof(bytes)), -ENOEXEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(code_of_narrow_files_is_known),
		cmocka_unit_test(other_files_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
