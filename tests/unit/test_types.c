/* SPDX-License-Identifier: GPL-2.0-or-later */
/* type sources: BTF files, ELF images, version codes, the validation on this kernel, the work
 * directory */
#include "unit.h"
#include "kernel/elf_image.h"
#include "kernel/host.h"
#include "kernel/layout_validate.h"
#include "kernel/type_source.h"
#include "sleeper.h"
#include "kernel/work_dir.h"

#include <elf.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#define CORPUS FIXTURES "/../fuzz/corpus_btf/"
#define VMLINUX "/sys/kernel/btf/vmlinux"

static uint32_t offset_of(const struct field_layout *layout, const char *of, const char *name)
{
	for (size_t i = 0; i < field_count; i++)
		if (!strcmp(field_rows[i].of, of) &&
		    !strcmp(field_rows[i].names[layout->name[i]], name))
			return layout->offset[i];
	fail_msg("no %s.%s", of, name);
	return 0;
}

static void good_btf_is_read(void **state)
{
	static const struct {
		const char *file, *state;
	} rows[] = {
		{"good", "__state"},
		{"good_old_names", "state"},
		{"good_nested", "__state"},
		{"good_all_kinds", "__state"},
		{"good_long_header", "__state"},
		{"elf", "__state"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct field_layout layout = {0};
		struct error e = {0};
		char path[512];

		snprintf(path, sizeof(path), CORPUS "%s", rows[i].file);
		if (btf_layout_read(path, &layout, &e))
			fail_msg("%s: %s", rows[i].file, e.line);
		assert_int_equal(offset_of(&layout, "task_struct", rows[i].state), 24);
		assert_int_equal(offset_of(&layout, "task_struct", "tgid"), 1268);
		assert_int_equal(offset_of(&layout, "task_struct", "comm"), 1752);
		assert_int_equal(offset_of(&layout, "cred", "euid"), 24);
	}
}

static void bad_btf_is_refused(void **state)
{
	static const struct {
		const char *file, *words;
	} rows[] = {
		{"empty", "too short"},
		{"cut_header", "too short"},
		{"cut_types", "cut off"},
		{"cut_names", "cut off"},
		{"other_byte_order", "other byte order"},
		{"version", "version"},
		{"huge_count", "longer than the whole"},
		{"huge_lengths", "cut off"},
		{"huge_header", "header is broken"},
		{"no_names", "names have no end"},
		{"kind_unknown", "kind of type"},
		{"cyclic", "has no task_struct.__state"},
		{"split", "has no task_struct.__state"},
		{"overlap", "overlap"},
		{"elf_without", "ELF file without BTF"},
		{"elf_cut", "ELF file without BTF"},
		{"elf_far", "ELF file without BTF"},
		{"missing", "No such file"},
		{"", "not a BTF file"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct field_layout layout = {.offset = {77}}, before = layout;
		struct error e = {0};
		char path[512];

		snprintf(path, sizeof(path), CORPUS "%s", rows[i].file);
		assert_true(btf_layout_read(path, &layout, &e) < 0);
		if (!strstr(e.line, rows[i].words) || !strstr(e.line, CORPUS))
			fail_msg("%s: %s", rows[i].file, e.line);
		assert_memory_equal(&layout, &before, sizeof(layout));
	}
}

/* An ELF file that has notes only: "Other" of type 0, then the one that is looked up. */
struct note_image {
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	struct {
		Elf64_Nhdr note;
		char owner[8];
		uint32_t code;
	} notes[3];
};

static struct note_image note_image_make(uint32_t code)
{
	struct note_image image = {
		.header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB},
			   .e_phoff = offsetof(struct note_image, segment),
			   .e_phentsize = sizeof(Elf64_Phdr),
			   .e_phnum = 1},
		.segment = {.p_type = PT_NOTE,
			    .p_offset = offsetof(struct note_image, notes),
			    .p_filesz = sizeof(image.notes)},
		.notes = {{{6, 4, 0}, "Other", 1},
			  {{6, 4, 7}, "Linux", 2},
			  {{6, 4, 0}, "Linux", code}},
	};

	return image;
}

/* A virtual CPU's thread had the bit of io_uring's workers, a thread that loads modules that of
 * vhost's. */
static void kernel_threads_are_told_by_version(void **state)
{
	assert_int_equal(kernel_thread_flags_of(0), 0x200000);
	assert_int_equal(kernel_thread_flags_of(KERNEL_CODE(4, 9)), 0x200000);
	assert_int_equal(kernel_thread_flags_of(KERNEL_CODE(5, 12)), 0x200010);
	assert_int_equal(kernel_thread_flags_of(KERNEL_CODE(6, 4)), 0x204010);
}

static void version_code_is_read(void **state)
{
	const uint32_t code = 4 << 16 | 9 << 8 | 255;
	struct note_image image = note_image_make(code);

	assert_int_equal(version_code_of_vdso(&image, sizeof(image)), code);
	/* cut off anywhere it has no note, and nothing after its end is read */
	for (size_t size = 0; size < sizeof(image); size++) {
		void *cut = malloc(size ? size : 1);

		assert_non_null(cut);
		memcpy(cut, &image, size);
		assert_int_equal(version_code_of_vdso(cut, size), 0);
		free(cut);
	}
	image.notes[0].note.n_namesz = 0xffffffff;
	assert_int_equal(version_code_of_vdso(&image, sizeof(image)), 0);
	image = note_image_make(code);
	image.notes[2].note.n_descsz = 8;
	assert_int_equal(version_code_of_vdso(&image, sizeof(image)), 0);
	image = note_image_make(code);
	image.segment.p_offset = UINT64_MAX - 8;
	assert_int_equal(version_code_of_vdso(&image, sizeof(image)), 0);

	assert_int_equal(version_code_of_release("4.9.0-19-amd64"), 4 << 16 | 9 << 8);
	assert_int_equal(version_code_of_release("4.9.320"), code);
	assert_int_equal(version_code_of_release("6.18-rc1"), 6 << 16 | 18 << 8);
	assert_int_equal(version_code_of_release("linux"), 0);
	assert_int_equal(version_code_of_signature("Ubuntu 4.15.0-20.21-generic 4.15.17"),
			 4 << 16 | 15 << 8 | 17);
	assert_int_equal(version_code_of_signature(""), 0);
}

/* The major and minor number are uname's everywhere. */
static void version_code_is_this_kernels(void **state)
{
	struct utsname name;
	uint32_t code;

	if (sleeper_is_emulated())
		skip(); /* the emulator has no vDSO */
	assert_int_equal(uname(&name), 0);
	code = version_code_read("");
	assert_int_not_equal(code, 0);
	assert_int_equal(code >> 8, version_code_of_release(name.release) >> 8);
}

static void each_field_is_validated(void **state)
{
	for (size_t i = 0; i < field_count; i++)
		if (!field_rows[i].sets && !layout_validate_knows(i))
			fail_msg("no row tells what %s.%s must be", field_rows[i].of,
				 field_rows[i].names[0]);
}

/* Validates in a child, as tsnap does: its parent is this test. */
static int validate_in_child(const struct field_layout *layout, struct layout_validation *proof)
{
	int pipes[2], status, result = -EIO;
	pid_t child;

	assert_int_equal(pipe(pipes), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		char parent_name[16];

		prctl(PR_GET_NAME, parent_name);
		prctl(PR_SET_NAME, "prove-child");
		result = layout_validate(layout, parent_name, proof);
		if (write(pipes[1], &result, sizeof(result)) < 0 ||
		    write(pipes[1], proof, sizeof(*proof)) < 0)
			_exit(1);
		_exit(0);
	}
	close(pipes[1]);
	assert_int_equal(read(pipes[0], &result, sizeof(result)), sizeof(result));
	assert_int_equal(read(pipes[0], proof, sizeof(*proof)), sizeof(*proof));
	close(pipes[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	return result;
}

/* Returns this kernel's own layout, which is validated, or skips the test. */
static struct field_layout layout_here(void)
{
	struct field_layout layout = {.sets = FIELDS_QUOTA};
	struct layout_validation proof = {0};
	struct error e = {0};
	int result;

	if (access(VMLINUX, R_OK) || geteuid())
		skip();
	if (btf_layout_read(VMLINUX, &layout, &e))
		fail_msg("%s", e.line);
	result = validate_in_child(&layout, &proof);
	if (result == -EPERM || result == -EACCES || result == -ENOSYS) {
		print_message("not validated: %s\n", proof.why);
		skip();
	}
	if (result)
		fail_msg("this kernel's own layout: %d, %s.%s %s", result,
			 field_rows[proof.field].of, field_rows[proof.field].names[0], proof.why);
	return layout;
}

static void right_layout_is_validated(void **state)
{
	layout_here();
}

/* Wrong fields, one at a time, by an amount at which there is another member. */
static void wrong_field_is_named(void **state)
{
	static const struct {
		const char *of, *name;
		int by;
	} rows[] = {
		{"task_struct", "__state", 64},
		{"task_struct", "__state", -4},
		{"task_struct", "stack", 16},
		{"task_struct", "flags", 4},
		{"task_struct", "exit_state", 8},
		{"task_struct", "exit_state", 4},
		{"task_struct", "exit_state", -4},
		{"task_struct", "pid", -8},
		{"task_struct", "tgid", 4},
		{"task_struct", "real_parent", 16},
		{"task_struct", "real_parent", 8},
		{"task_struct", "nvcsw", 16}, /* nivcsw is at 8, and grows alike by chance */
		{"task_struct", "start_boottime", 8},
		{"task_struct", "start_boottime", -8},
		{"task_struct", "cred", 64},
		{"task_struct", "cred", -8},
		{"task_struct", "comm", 1},
		{"task_struct", "group_leader", 8},
		{"pid", "numbers", -16},
		{"cred", "euid", 4},
		{"cred", "euid", -4},
		{"cred", "euid", 8},
		{"task_struct", "prio", -4},
		{"task_struct", "prio", 4},
		{"task_struct", "prio", 8},
	};
	struct field_layout right = layout_here();

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct field_layout layout = right;
		struct layout_validation proof = {0};
		size_t field = 0;

		while (strcmp(field_rows[field].of, rows[i].of) ||
		       strcmp(field_rows[field].names[0], rows[i].name))
			field++;
		layout.offset[field] = (uint32_t)((int)layout.offset[field] + rows[i].by);
		if (validate_in_child(&layout, &proof) != 1)
			fail_msg("row %zu: %s moved by %d was believed", i, rows[i].name,
				 rows[i].by);
		if (proof.field != field)
			fail_msg("row %zu: %s moved by %d: %s was named", i, rows[i].name,
				 rows[i].by, field_rows[proof.field].names[0]);
	}
}

static bool exists(const char *path)
{
	struct stat stat;

	return !lstat(path, &stat);
}

/* Directories that no process holds are removed by the next one; those that a process holds are
 * kept, whatever its pid. */
static void stale_work_dir_is_removed(void **state)
{
	struct work_dir owned, left, next;
	char others[] = "/tmp/tsnap.XXXXXX"; /* a user's own "tsnap.backup" */
	struct error e = {0};

	assert_int_equal(work_dir_make(&owned, &e), 0);
	assert_int_equal(work_dir_make(&left, &e), 0);
	assert_non_null(mkdtemp(others));
	assert_int_equal(work_dir_write(left.path, "a/b/c", "text", &e), 0);
	close(left.lock); /* the lock is released, as when its process was killed */
	assert_int_equal(work_dir_make(&next, &e), 0);
	assert_false(exists(left.path));
	assert_true(exists(owned.path));
	assert_int_equal(rmdir(others), 0);
	work_dir_remove(&owned);
	work_dir_remove(&next);
	work_dir_remove(&next); /* removed already: does nothing */
	assert_false(exists(owned.path));
}

/* All sources have a word of --kernel-types, and are found by it. */
static void sources_are_named(void **state)
{
	struct text names = {0};
	const char *rest, *before = "";
	struct text name = {0};
	size_t count = 0;

	type_source_names_add(&names, ",", ",");
	rest = text_string(&names);
	assert_true(text_next_name(&name, &rest));
	assert_string_equal(text_string(&name), TYPE_SOURCE_AUTO);
	assert_null(type_source_of(TYPE_SOURCE_AUTO));
	while (text_next_name(&name, &rest)) {
		const struct type_source *source = type_source_of(text_string(&name));

		assert_non_null(source);
		assert_true(strcmp(before, source->name) < 0);
		before = source->name;
		count++;
	}
	for (const struct type_source *source = type_sources; source->name; source++)
		count--;
	assert_int_equal(count, 0);
	text_clear(&names);
	type_source_names_add(&names, ", ", " or ");
	assert_string_equal(text_string(&names), "auto, btf, headers, kheaders or offsets");
	text_done(&names);
	text_done(&name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_btf_is_read),
		cmocka_unit_test(bad_btf_is_refused),
		cmocka_unit_test(kernel_threads_are_told_by_version),
		cmocka_unit_test(version_code_is_read),
		cmocka_unit_test(version_code_is_this_kernels),
		cmocka_unit_test(each_field_is_validated),
		cmocka_unit_test(right_layout_is_validated),
		cmocka_unit_test(wrong_field_is_named),
		cmocka_unit_test(stale_work_dir_is_removed),
		cmocka_unit_test(sources_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
