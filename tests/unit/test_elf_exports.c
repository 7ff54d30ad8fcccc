/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Exports of files by name: the C library as the dynamic linker finds it, and invalid tables. */
#include "unit.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include "unwind/elf/elf_exports.h"

#define SYMBOLS 400
#define HASH_OF_EXPORT 0xfc32da86 /* hash of "export", its lowest bit 0 */

struct image {
	Elf64_Ehdr header;
	Elf64_Shdr sections[5];
	char section_names[16];
	struct {
		uint32_t bucket_count, first_symbol, bloom_words, bloom_shift;
		uint64_t bloom[1];
		uint32_t buckets[1];
		uint32_t hashes[SYMBOLS - 1];
	} hash;
	Elf64_Sym symbols[SYMBOLS];
	char names[16];
};

static struct image image;

#define SECTION(number, kind, member, to)                                     \
	image.sections[number] = (Elf64_Shdr)                                 \
	{                                                                     \
		.sh_type = kind, .sh_offset = offsetof(struct image, member), \
		.sh_size = sizeof(image.member), .sh_link = to                \
	}

static void image_make(void)
{
	memset(&image, 0, sizeof(image));
	image.header = (Elf64_Ehdr){
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB},
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_shoff = offsetof(struct image, sections),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 5,
		.e_shstrndx = 1,
	};
	SECTION(1, SHT_STRTAB, section_names, 0);
	SECTION(2, SHT_GNU_HASH, hash, 3);
	SECTION(3, SHT_DYNSYM, symbols, 4);
	SECTION(4, SHT_STRTAB, names, 0);
	memcpy(image.section_names + 1, ".gnu.hash", 10);
	image.sections[2].sh_name = 1;
	memcpy(image.names + 1, "export", 7);
	image.hash.bucket_count = image.hash.first_symbol = image.hash.bloom_words = 1;
	image.hash.buckets[0] = 1;
}

static void export_put(uint32_t number)
{
	image.symbols[number] =
		(Elf64_Sym){.st_name = 1, .st_shndx = 1, .st_value = 0x1000 + number};
	image.hash.hashes[number - 1] = HASH_OF_EXPORT;
}

static uint64_t export_of(const char *name)
{
	struct elf_file elf;
	uint64_t address = 1;
	unsigned int found;

	assert_int_equal(elf_file_read(&elf, -1, (const char *)&image, sizeof(image)), 0);
	found = elf_exports(&elf, &name, &address, 1);
	assert_int_equal(found, address != 0);
	return address;
}

static void lies_are_left(void **state)
{
	image_make();
	export_put(3);
	assert_int_equal(export_of("export"), 0x1003);
	assert_int_equal(export_of("other"), 0);
	/* bucket that ends before the symbol */
	image.hash.hashes[0] = 1;
	assert_int_equal(export_of("export"), 0);
	/* bucket without an end */
	image_make();
	export_put(SYMBOLS - 1);
	assert_int_equal(export_of("export"), 0);
	image.hash.buckets[0] = UINT32_MAX;
	assert_int_equal(export_of("export"), 0);
	image_make();
	export_put(1);
	assert_int_equal(export_of("export"), 0x1001);
	image.symbols[1].st_name = sizeof(image.names) - 3;
	assert_int_equal(export_of("export"), 0);
	export_put(1);
	image.symbols[1].st_shndx = SHN_UNDEF;
	assert_int_equal(export_of("export"), 0);
	export_put(1);
	image.hash.first_symbol = 2;
	assert_int_equal(export_of("export"), 0);
	image.hash.first_symbol = 1;
	image.hash.bloom_words = UINT32_MAX;
	assert_int_equal(export_of("export"), 0);
	image.hash.bloom_words = 1;
	image.hash.bucket_count = 0;
	assert_int_equal(export_of("export"), 0);
	image.hash.bucket_count = UINT32_MAX;
	assert_int_equal(export_of("export"), 0);
	image.hash.bucket_count = 1;
	image.sections[2].sh_link = 77;
	assert_int_equal(export_of("export"), 0);
	image.sections[2].sh_link = 3;
	image.sections[3].sh_size = 24;
	assert_int_equal(export_of("export"), 0);
}

static void c_library(void **state)
{
	static const char *const names[] = {"getppid", "no_such_function", "bsearch", "clearenv"};
	uint64_t addresses[4];
	struct link_map *map;
	struct elf_file elf;
	struct stat file;
	void *library = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	int fd;

	if (!library)
		skip();
	assert_int_equal(dlinfo(library, RTLD_DI_LINKMAP, &map), 0);
	fd = open(map->l_name, O_RDONLY);
	assert_int_equal(fstat(fd, &file), 0);
	assert_int_equal(elf_file_read(&elf, fd, NULL, (uint64_t)file.st_size), 0);
	assert_int_equal(elf_exports(&elf, names, addresses, 4), 3);
	for (int i = 0; i < 4; i++)
		assert_int_equal(addresses[i] ? addresses[i] + map->l_addr : 0,
				 (uintptr_t)dlsym(library, names[i]));
	close(fd);
	dlclose(library);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lies_are_left),
		cmocka_unit_test(c_library),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
