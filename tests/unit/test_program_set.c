/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Programs as bytes, the directory that they are kept in, and files of --write-programs. */
#include "unit.h"
#include "base/index.h"
#include "base/text.h"
#include "kernel/bpf_call.h"
#include "kernel/program_cache.h"
#include "kernel/program_set.h"
#include "kernel/program_text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAPS 2

/* A set of two maps and two programs; both programs name the second map. */
static void set_make(struct program_set *set, uint64_t wanted, const char *kernel)
{
	const struct bpf_insn first[] = {
		BPF_MAP_(BPF_REG_1, 1),
		BPF_OP_(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_2, 0, 0, 7),
		BPF_OP_(0, 0, 0, 0, 9),
		BPF_SET_(0, 0),
		BPF_EXIT_(),
	};
	const struct bpf_insn second[] = {BPF_MAP_(BPF_REG_1, 1), BPF_SET_(0, 0), BPF_EXIT_()};

	*set = (struct program_set){.wanted = wanted,
				    .how = 2,
				    .text = 3,
				    .near_threads = 16384,
				    .types_source = "btf",
				    .layout = {.sets = FIELDS_QUOTA},
				    .map_count = MAPS,
				    .program_count = 2,
				    .maps = {{"ts_threads", 1, 4, 200, 1024, 1, ENTRIES_PER_THREAD},
					     {"ts_other", 2, 4, 8, 0, 64, ENTRIES_FIXED}},
				    .programs = {{"first", 6}, {"second", 4}}};
	snprintf(set->kernel, sizeof(set->kernel), "%s", kernel);
	/* no two fields of a struct overlap */
	for (size_t i = 0; i < field_count; i++)
		set->layout.offset[i] = (uint32_t)(16 * i + 16);
	set->layout.lacking[field_index("rq", "cpu")] = true;
	set->instructions[0] = memcpy(malloc(sizeof(first)), first, sizeof(first));
	set->instructions[1] = memcpy(malloc(sizeof(second)), second, sizeof(second));
}

static void set_bytes(struct text *bytes, uint64_t wanted, const char *kernel)
{
	struct program_set set;

	set_make(&set, wanted, kernel);
	program_set_write(&set, bytes);
	program_set_done(&set);
}

static int bytes_refused(const char *bytes, size_t length)
{
	struct program_set set;
	size_t used;
	int result = program_set_read(bytes, length, &set, &used);

	program_set_done(&set);
	return result;
}

static void bytes_are_read_as_they_were_written(void **state)
{
	struct text bytes = {0}, again = {0};
	struct program_set set;
	size_t used;

	set_bytes(&bytes, 1, "6.1.0 #1");
	text_add_string(&bytes, "what follows");
	assert_int_equal(program_set_read(bytes.bytes, bytes.length, &set, &used), 0);
	assert_int_equal(used, bytes.length - strlen("what follows"));
	assert_string_equal(set.kernel, "6.1.0 #1");
	assert_int_equal(set.wanted, 1);
	assert_int_equal(set.text, 3);
	assert_int_equal(set.near_threads, 16384);
	assert_true(set.layout.lacking[field_index("rq", "cpu")]);
	assert_int_equal(program_set_map(&set, "ts_other"), 1);
	assert_int_equal(program_set_map(&set, "ts_no"), -1);
	assert_int_equal(program_set_program(&set, "second"), 1);
	program_set_write(&set, &again);
	assert_int_equal(again.length, used);
	assert_memory_equal(again.bytes, bytes.bytes, used);
	program_set_done(&set);
	text_done(&bytes);
	text_done(&again);
}

static void damage_is_refused(void **state)
{
	struct text bytes = {0};

	set_bytes(&bytes, 1, "6.1.0 #1");
	assert_int_equal(bytes_refused(bytes.bytes, bytes.length), 0);
	for (size_t length = 0; length < bytes.length; length++)
		assert_int_equal(bytes_refused(bytes.bytes, length), -EINVAL);
	for (size_t i = 0; i < bytes.length; i++)
		for (int bit = 1; bit < 256; bit <<= 1) {
			bytes.bytes[i] ^= (char)bit;
			assert_int_equal(bytes_refused(bytes.bytes, bytes.length), -EINVAL);
			bytes.bytes[i] ^= (char)bit;
		}
	text_done(&bytes);
}

/* Puts the right length and checksum in front: what the parser itself must refuse. */
static int body_refused(struct text *bytes)
{
	uint64_t length = bytes->length - 24, checksum = hash_bytes(bytes->bytes + 24, length);

	memcpy(bytes->bytes + 8, &length, sizeof(length));
	memcpy(bytes->bytes + 16, &checksum, sizeof(checksum));
	return bytes_refused(bytes->bytes, bytes->length);
}

/* Writes the set with a change, and has it read. */
static int changed_refused(void (*change)(struct program_set *set))
{
	struct program_set set;
	struct text bytes = {0};
	int result;

	set_make(&set, 1, "6.1.0 #1");
	change(&set);
	program_set_write(&set, &bytes);
	result = bytes_refused(bytes.bytes, bytes.length);
	program_set_done(&set);
	text_done(&bytes);
	return result;
}

static void map_absent(struct program_set *set)
{
	set->instructions[0][0].imm = MAPS;
}

static void map_negative(struct program_set *set)
{
	set->instructions[1][0].imm = -1;
}

static void descriptor_named(struct program_set *set)
{
	set->instructions[0][2].src_reg = BPF_PSEUDO_MAP_VALUE;
}

static void constant_cut(struct program_set *set)
{
	set->instructions[1][3] = set->instructions[1][0];
}

static void program_empty(struct program_set *set)
{
	set->programs[1].count = 0;
}

static void name_endless(struct program_set *set)
{
	memset(set->maps[0].name, 'x', sizeof(set->maps[0].name));
}

static void function_endless(struct program_set *set)
{
	memset(set->programs[0].function, 'x', sizeof(set->programs[0].function));
}

static void kernel_endless(struct program_set *set)
{
	memset(set->kernel, 'x', sizeof(set->kernel));
}

static void unit_unknown(struct program_set *set)
{
	set->maps[1].unit = MAP_UNIT_COUNT;
}

static void map_without_entries(struct program_set *set)
{
	set->maps[1].entries = 0;
}

static void field_name_unknown(struct program_set *set)
{
	set->layout.name[1] = 1;
}

static void field_far(struct program_set *set)
{
	set->layout.offset[2] = STRUCT_BYTES_MAX + 1;
}

static void fields_overlap(struct program_set *set)
{
	set->layout.offset[4] = set->layout.offset[5];
}

static void nothing_changed(struct program_set *set)
{
	(void)set;
}

static void nonsense_is_refused(void **state)
{
	static void (*const changes[])(struct program_set * set) = {
		map_absent,	map_negative,	     descriptor_named,	 constant_cut,
		program_empty,	name_endless,	     function_endless,	 kernel_endless,
		unit_unknown,	map_without_entries, field_name_unknown, field_far,
		fields_overlap,
	};

	assert_int_equal(changed_refused(nothing_changed), 0);
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		if (changed_refused(changes[i]) != -EINVAL)
			fail_msg("change %zu is taken", i);
}

/* Each number of the body becomes absurd in turn: refused, or at least read within bounds. */
static void absurd_sizes_are_refused(void **state)
{
	struct text bytes = {0};
	size_t whole;

	set_bytes(&bytes, 1, "6.1.0 #1");
	whole = bytes.length;
	for (size_t at = 24; at + 4 <= whole; at += 4) {
		char before[4];

		memcpy(before, bytes.bytes + at, 4);
		memset(bytes.bytes + at, 0xff, 4);
		body_refused(&bytes);
		memcpy(bytes.bytes + at, before, 4);
	}
	assert_int_equal(body_refused(&bytes), 0);
	for (; bytes.length > 24; bytes.length--)
		assert_int_equal(bytes.length == whole ? 0 : -EINVAL, body_refused(&bytes));
	text_done(&bytes);
}

/* Returns the unit of the row of the map that a declaration names; -1: there is no such row. */
static int unit_of(const char *declaration)
{
	for (size_t i = 0; i < KERNEL_MAP_COUNT; i++) {
		const char *name = kernel_map_rows[i].name, *at = strstr(declaration, name);

		if (at && strchr(", )", at[strlen(name)]))
			return (int)kernel_map_rows[i].unit;
	}
	return -1;
}

/* Counts the declarations of a text that begin with a word, and checks the unit of each map whose
 * size is not the same on every host. */
static int units_check(const char *text, const char *word)
{
	int count = 0;

	for (const char *at = text; (at = strstr(at, word)); at++) {
		char *declaration = strndup(at, strcspn(at, ";"));
		int unit = strstr(declaration, "THREADS_MAX") ? ENTRIES_PER_THREAD
			   : strstr(declaration, "CPUS_MAX")  ? ENTRIES_PER_CPU
			   : strstr(word, "PERF_OUTPUT")      ? ENTRIES_PER_CPU
							      : ENTRIES_FIXED;

		if (unit_of(declaration) != unit && (unit || unit_of(declaration) > 0))
			fail_msg("kernel_map_rows has another unit: %s", declaration);
		count++;
		free(declaration);
	}
	return count;
}

/* A map that is too small on a host with more CPUs would only show there. */
static void units_are_those_of_the_text(void **state)
{
	int count = 0;

	for (const struct embedded_file *file = embedded_files; file->name; file++) {
		count += units_check(file->text, "\nBPF_TABLE(");
		count += units_check(file->text, "\nBPF_F_TABLE(");
		count += units_check(file->text, "\nBPF_QUEUESTACK(");
		count += units_check(file->text, "\nBPF_PERF_OUTPUT(");
	}
	assert_true(count >= KERNEL_MAP_COUNT);
}

/* --- the directory; the tests need root, as the cache does */

static char root[] = "/tmp/tsnap_unit_XXXXXX", path[64], why[PROGRAM_CACHE_WHY_SIZE];

static int directory_begin(void **state)
{
	if (!mkdtemp(root))
		return -1;
	snprintf(path, sizeof(path), "%s/cache", root);
	return 0;
}

static int directory_end(void **state)
{
	char command[96];

	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

static int put(uint64_t wanted)
{
	struct text bytes = {0};
	struct program_set set;
	int result;

	set_make(&set, wanted, "6.1.0 #1");
	program_set_write(&set, &bytes);
	result = program_cache_put(path, &set, &bytes, why);
	program_set_done(&set);
	text_done(&bytes);
	return result;
}

static int find(uint64_t wanted, uint64_t how, const char *kernel)
{
	struct program_set like, set;
	int result;

	set_make(&like, wanted, kernel);
	like.how = how;
	result = program_cache_get(path, &like, &set, why);
	program_set_done(&like);
	if (!result)
		program_set_done(&set);
	return result;
}

/* The path of the only file in the directory. */
static const char *only_file(void)
{
	static char file[128];
	FILE *list;

	snprintf(file, sizeof(file), "ls -d %s/*", path);
	list = popen(file, "r");
	assert_non_null(list);
	assert_non_null(fgets(file, sizeof(file), list));
	pclose(list);
	file[strcspn(file, "\n")] = '\0';
	return file;
}

static void sets_are_cached(void **state)
{
	struct stat about;

	if (geteuid())
		skip();
	assert_int_equal(find(1, 2, "6.1.0 #1"), -ENOENT);
	assert_string_equal(why, "");
	assert_int_equal(put(1), 0);
	assert_int_equal(stat(path, &about), 0);
	assert_int_equal(about.st_mode & 07777, 0700);
	assert_int_equal(stat(only_file(), &about), 0);
	assert_int_equal(about.st_mode & 07777, 0600);
	assert_int_equal(find(1, 2, "6.1.0 #1"), 0);
	assert_int_equal(find(2, 2, "6.1.0 #1"), -ENOENT);
	assert_int_equal(find(1, 3, "6.1.0 #1"), -ENOENT);
	assert_int_equal(find(1, 2, "6.1.0 #2"), -ENOENT);
}

/* Whatever makes it possible that another user wrote what is there. */
static void others_are_not_trusted(void **state)
{
	char other[96];

	if (geteuid())
		skip();
	assert_int_equal(put(1), 0);
	for (int i = 0; i < 2; i++) {
		const char *victim = i ? path : only_file();
		mode_t mode = i ? 0700 : 0600;

		assert_int_equal(chmod(victim, mode | 020), 0);
		assert_int_equal(find(1, 2, "6.1.0 #1"), -ENOENT);
		assert_non_null(strstr(why, "others than root"));
		assert_int_equal(chmod(victim, mode), 0);
		assert_int_equal(chown(victim, 65534, (gid_t)-1), 0);
		assert_int_equal(find(1, 2, "6.1.0 #1"), -ENOENT);
		assert_non_null(strstr(why, "does not belong to root"));
		if (i)
			assert_int_not_equal(put(1), 0);
		assert_int_equal(chown(victim, 0, (gid_t)-1), 0);
		assert_int_equal(find(1, 2, "6.1.0 #1"), 0);
	}
	assert_int_equal(chmod(root, 0777), 0);
	assert_int_equal(find(1, 2, "6.1.0 #1"), -ENOENT);
	assert_int_equal(chmod(root, 01777), 0); /* as /tmp */
	assert_int_equal(find(1, 2, "6.1.0 #1"), 0);
	assert_int_equal(chmod(root, 0700), 0);
	/* links, to the directory and to the file */
	snprintf(other, sizeof(other), "%s/real", root);
	assert_int_equal(rename(path, other), 0);
	assert_int_equal(symlink(other, path), 0);
	assert_int_equal(find(1, 2, "6.1.0 #1"), -ENOENT);
	assert_int_not_equal(put(1), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rename(other, path), 0);
	snprintf(other, sizeof(other), "%s/file", root);
	assert_int_equal(link(only_file(), other), 0);
	assert_int_equal(find(1, 2, "6.1.0 #1"), -ENOENT);
	assert_int_equal(unlink(only_file()), 0);
	assert_int_equal(put(1), 0);
	assert_int_equal(rename(only_file(), other), 0);
	assert_int_equal(put(1), 0);
	{
		char *file = strdup(only_file());

		assert_int_equal(unlink(file), 0);
		assert_int_equal(symlink(other, file), 0);
		assert_int_equal(find(1, 2, "6.1.0 #1"), -ENOENT);
		assert_int_equal(unlink(file), 0);
		assert_int_equal(mkfifo(file, 0600), 0);
		assert_int_equal(find(1, 2, "6.1.0 #1"), -ENOENT);
		assert_int_equal(unlink(file), 0);
		free(file);
	}
}

static void damaged_files_are_no_files(void **state)
{
	int fd;

	if (geteuid())
		skip();
	assert_int_equal(put(1), 0);
	fd = open(only_file(), O_WRONLY);
	assert_int_equal(pwrite(fd, "x", 1, 700), 1);
	assert_int_equal(find(1, 2, "6.1.0 #1"), -ENOENT);
	assert_non_null(strstr(why, "damaged"));
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(find(1, 2, "6.1.0 #1"), -ENOENT);
	close(fd);
	assert_int_equal(put(1), 0);
	assert_int_equal(find(1, 2, "6.1.0 #1"), 0);
	/* a whole set, but under the name of another */
	fd = open(only_file(), O_WRONLY | O_TRUNC);
	{
		struct text bytes = {0};

		set_bytes(&bytes, 5, "6.1.0 #1");
		assert_int_equal(write(fd, bytes.bytes, bytes.length), bytes.length);
		text_done(&bytes);
	}
	close(fd);
	assert_int_equal(find(1, 2, "6.1.0 #1"), -ENOENT);
	assert_int_equal(put(1), 0);
}

static void few_are_cached(void **state)
{
	int found = 0;

	if (geteuid())
		skip();
	for (uint64_t i = 1; i <= PROGRAM_CACHE_FILES + 20; i++) {
		assert_int_equal(put(i), 0);
		assert_int_equal(find(1, 2, "6.1.0 #1"), 0); /* used again and again */
		usleep(1000);
	}
	for (uint64_t i = 1; i <= PROGRAM_CACHE_FILES + 20; i++)
		found += !find(i, 2, "6.1.0 #1");
	assert_int_equal(found, PROGRAM_CACHE_FILES);
	assert_int_equal(find(2, 2, "6.1.0 #1"), -ENOENT);
}

/* --- files of --write-programs */

static int add(const char *file, uint64_t wanted, const char *kernel, uint32_t threads,
	       struct error *e)
{
	struct text bytes = {0};
	struct program_set set;
	int result;

	set_make(&set, wanted, kernel);
	set.near_threads = threads;
	program_set_write(&set, &bytes);
	result = program_file_add(file, &set, &bytes, e);
	program_set_done(&set);
	text_done(&bytes);
	return result;
}

static int find_in(const char *file, uint64_t wanted, const char *kernel, uint32_t threads,
		   uint32_t *got, struct error *e)
{
	struct program_set like, set;
	int result;

	set_make(&like, wanted, kernel);
	like.near_threads = threads;
	like.how = 99; /* another libbcc, another build */
	result = program_file_find(file, &like, &set, e);
	*got = set.near_threads;
	program_set_done(&like);
	program_set_done(&set);
	return result;
}

static void files_have_several(void **state)
{
	struct error e = {0};
	char file[96], *line = e.line;
	struct stat once, twice;
	uint32_t got;
	int fd;

	snprintf(file, sizeof(file), "%s/programs", root);
	assert_int_equal(find_in(file, 1, "6.1.0 #1", 16384, &got, &e), -ENOENT);
	assert_int_equal(add(file, 1, "6.1.0 #1", 16384, &e), 0);
	assert_int_equal(stat(file, &once), 0);
	assert_int_equal(add(file, 1, "6.1.0 #1", 16384, &e), 0);
	assert_int_equal(stat(file, &twice), 0);
	assert_int_equal(once.st_size, twice.st_size);
	assert_int_equal(add(file, 2, "6.1.0 #1", 16384, &e), 0);
	assert_int_equal(add(file, 1, "6.1.0 #2", 16384, &e), 0);
	assert_int_equal(add(file, 1, "6.1.0 #1", 65536, &e), 0);
	assert_int_equal(find_in(file, 1, "6.1.0 #1", 16384, &got, &e), 0);
	assert_int_equal(got, 16384);
	assert_int_equal(find_in(file, 1, "6.1.0 #1", 131072, &got, &e), 0);
	assert_int_equal(got, 65536);
	assert_int_equal(find_in(file, 2, "6.1.0 #1", 131072, &got, &e), 0);
	assert_int_equal(find_in(file, 3, "6.1.0 #1", 16384, &got, &e), -EINVAL);
	assert_non_null(strstr(line, "these options"));
	assert_int_equal(find_in(file, 1, "6.2.0 #1", 16384, &got, &e), -EINVAL);
	assert_non_null(strstr(line, "6.2.0 #1"));
	assert_non_null(strstr(line, "6.1.0 #"));
	assert_int_equal(chmod(file, 0666), 0);
	assert_int_equal(find_in(file, 1, "6.1.0 #1", 16384, &got, &e), -EPERM);
	assert_int_equal(chmod(file, 0644), 0);
	fd = open(file, O_WRONLY);
	assert_int_equal(ftruncate(fd, once.st_size + 20), 0);
	close(fd);
	assert_int_equal(find_in(file, 1, "6.1.0 #1", 16384, &got, &e), -EINVAL);
	assert_non_null(strstr(line, "damaged"));
	/* what is no such file is not written to */
	assert_int_equal(add(file, 1, "6.1.0 #1", 16384, &e), -EINVAL);
	error_done(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_are_read_as_they_were_written),
		cmocka_unit_test(damage_is_refused),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(absurd_sizes_are_refused),
		cmocka_unit_test(units_are_those_of_the_text),
		cmocka_unit_test(sets_are_cached),
		cmocka_unit_test(others_are_not_trusted),
		cmocka_unit_test(damaged_files_are_no_files),
		cmocka_unit_test(few_are_cached),
		cmocka_unit_test(files_have_several),
	};

	return cmocka_run_group_tests(tests, directory_begin, directory_end);
}
