/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Identity of a file with code. The file system is simulated by the test. */
#include "unit.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#include "unwind/module_table.h"

static unsigned int magic; /* magic number of the file system; 0: it does not answer */

int __wrap_fstatfs(int fd, struct statfs *system);

int __wrap_fstatfs(int fd, struct statfs *system)
{
	*system = (struct statfs){.f_type = (__typeof__(system->f_type))magic};
	errno = EIO;
	return magic ? 0 : -1;
}

static void owners(void **state)
{
	const struct stat file = {.st_uid = 1000};

	magic = EXT4_SUPER_MAGIC;
	assert_int_equal(module_file_owner(0, &file), 1000);
	magic = 0x65735546; /* FUSE_SUPER_MAGIC, which older headers lack */
	assert_int_equal(module_file_owner(0, &file), OWNER_UNKNOWN);
	magic = 0;
	assert_int_equal(module_file_owner(0, &file), OWNER_UNKNOWN);
}

static void copies(void **state)
{
	const struct elf_file elf = {.bytes = 5000, .build_id = {1, 2, 3}, .build_id_bytes = 3};
	struct elf_file other = elf;

	other.fd = 9;
	assert_true(module_identity(&elf, 0) == module_identity(&other, 0));
	assert_true(module_identity(&elf, 0) != module_identity(&elf, 1000));
	other.bytes--;
	assert_true(module_identity(&elf, 0) != module_identity(&other, 0));
	other = elf;
	other.build_id[2]++;
	assert_true(module_identity(&elf, 0) != module_identity(&other, 0));
}

static void keys(void **state)
{
	const struct stat file = {.st_dev = 1, .st_ino = 2, .st_size = 3};
	struct stat other = file;

	assert_true(module_file_key(&file) == module_file_key(&other));
	other.st_mtim.tv_nsec = 1;
	assert_true(module_file_key(&file) != module_file_key(&other));
}

static void locations(void **state)
{
	const struct elf_file elf = {.build_id = {0xab, 1}, .build_id_bytes = 2}, none = {0};
	char *text = module_location_text("/lib/a\x1b[2J.so", &elf);

	assert_null(strchr(text, '\x1b'));
	assert_string_equal(strchr(text, '@'), "@ab01");
	free(text);
	text = module_location_text("", &none);
	assert_string_equal(text, "?@");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(owners),
		cmocka_unit_test(copies),
		cmocka_unit_test(keys),
		cmocka_unit_test(locations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
