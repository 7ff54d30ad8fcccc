/* SPDX-License-Identifier: GPL-2.0-or-later */
/* avoid */
#include "unit.h"
#include "base/avoid.h"

#include <unistd.h>

static void processes_are_avoided_once(void **state)
{
	size_t count;

	(void)state;
	assert_false(avoids_process(getpid()));
	assert_null(avoid_processes_text(&count));
	assert_true(avoid_process(getpid(), "its memory map is locked"));
	assert_false(avoid_process(getpid(), "its memory map is locked"));
	assert_true(avoids_process(getpid()));
	assert_false(avoids_process(getppid()));
	assert_non_null(strstr(avoid_processes_text(&count), "(its memory map is locked)"));
	assert_int_equal(count, 1);
	/* the others are only counted */
	for (int64_t pid = 5000001; pid < 5000020; pid++)
		assert_true(avoid_process(pid, "why"));
	assert_null(strstr(avoid_processes_text(&count), "5000019"));
	assert_int_equal(count, 20);
}

static void files_are_avoided_below_a_directory(void **state)
{
	size_t count;

	(void)state;
	assert_false(avoids_file("/mnt/dead/lib.so"));
	assert_true(avoid_files("/mnt/dead", "an NFS server that does not answer"));
	assert_false(avoid_files("/mnt/dead/below", "the same"));
	assert_true(avoids_file("/mnt/dead/lib.so"));
	assert_true(avoids_file("/mnt/dead"));
	assert_false(avoids_file("/mnt/deadly/lib.so"));
	assert_string_equal(avoid_files_text(&count),
			    "/mnt/dead (an NFS server that does not answer)");
	/* all files are avoided when the slots are used up: a user can't add more for ever */
	for (int i = 2; i < AVOID_FILES_MAX; i++) {
		char path[32];

		snprintf(path, sizeof(path), "/mnt/%d", i);
		assert_true(avoid_files(path, "why"));
		assert_false(avoids_file("/usr/lib/libc.so.6"));
	}
	assert_true(avoid_files("/mnt/last", "why"));
	assert_true(avoids_file("/usr/lib/libc.so.6"));
	assert_false(avoid_files("/mnt/more", "why"));
}

static void questions_for_users_are_counted(void **state)
{
	_Atomic uint64_t count = 0;

	(void)state;
	avoid_users_count(&count);
	avoid_users_requested(true);
	assert_int_equal(count & 1, 1);
	avoid_users_requested(false);
	assert_int_equal(count, 2);
	assert_false(avoids_users());
	avoid_users();
	assert_true(avoids_users());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(processes_are_avoided_once),
		cmocka_unit_test(files_are_avoided_below_a_directory),
		cmocka_unit_test(questions_for_users_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
