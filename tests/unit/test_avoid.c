/* SPDX-License-Identifier: GPL-2.0-or-later */
/* avoid */
#include "unit.h"
#include "keeper/avoid.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t child_make(void)
{
	pid_t child = fork();

	if (!child) {
		pause();
		_exit(0);
	}
	assert_true(child > 0);
	return child;
}

static void child_end(pid_t child)
{
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void processes_are_avoided_until_they_end(void **state)
{
	struct text words = {0};
	size_t count;
	pid_t child = child_make(), other = child_make();

	assert_false(avoids_process(child));
	count = avoid_processes_text(&words);
	assert_true(avoid_process(child, "its memory map is locked"));
	assert_false(avoid_process(child, "its memory map is locked"));
	usleep(2000); /* the answer before holds for 1 ms */
	assert_true(avoids_process(child));
	assert_false(avoids_process(other));
	text_clear(&words);
	assert_int_equal(avoid_processes_text(&words), count + 1);
	assert_non_null(strstr(text_string(&words), "(its memory map is locked)"));
	child_end(child);
	usleep(2000);
	assert_false(avoids_process(child)); /* nor one that gets the id again */
	assert_true(avoid_process(other, "why"));
	assert_int_equal(avoid_processes_text(&words), count + 1);
	child_end(other);
	text_done(&words);
}

static struct avoid_state asked_state;
static int asked_count;
static bool is_busy, is_free_again;

static void state_ask(int64_t id, int fd, struct avoid_state *state)
{
	(void)fd;
	asked_count++;
	*state = asked_state;
	state->pid = id;
	if (is_busy)
		state->holder = (uint64_t)asked_count;
	if (is_free_again && asked_count == 3)
		state->why = NULL;
}

/* Returns whether a process that was not asked for before is avoided. */
static bool asks(int64_t pid)
{
	asked_count = 0;
	return avoids_process(pid);
}

static void locked_processes_are_asked_for(void **state)
{
	uint64_t count = avoid_locked_count();
	struct text words = {0};
	int count_all = 0;

	avoid_ask_with(state_ask);
	assert_false(asks(5000001));
	assert_int_equal(asked_count, 1);
	/* it was asked for just now, unless this thread had no CPU in between */
	for (int i = 0; i < 100 && asked_count; i++)
		assert_false(asks(5000001));
	assert_int_equal(asked_count, 0);
	/* the answer may be old once the lock of the memory map is waited for */
	assert_false(avoids_memory(5000001));
	assert_int_equal(asked_count, 1);
	assert_false(avoids_memory(5000001));
	assert_int_equal(asked_count, 2);
	assert_true(avoid_waits_for_map("pagemap"));
	assert_false(avoid_waits_for_map("stat"));
	asked_state = (struct avoid_state){.why = "its memory map is locked", .holder = 1};
	assert_true(asks(5000002));
	assert_true(asked_count > 1);
	/* one that was locked just now still is */
	for (int i = 0; i < 100 && asked_count; i++) {
		asked_count = 0;
		assert_true(avoids_memory(5000002));
	}
	assert_int_equal(asked_count, 0);
	assert_true(avoid_locked_count() > count);
	count = avoid_locked_count();
	usleep(5000);
	is_busy = true;
	assert_false(asks(5000003)); /* each time somebody else had it */
	is_busy = false;
	usleep(5000);
	is_free_again = true;
	assert_false(asks(5000004));
	is_free_again = false;
	assert_int_equal(avoid_locked_count(), count);
	/* many that are locked are not asked for again and again */
	for (int64_t pid = 5000010; pid <= 5000110; pid++) {
		assert_true(asks(pid));
		count_all += asked_count;
	}
	assert_true(count_all < 200);
	/* they are named once they were locked for a while */
	assert_int_equal(avoid_processes_text(&words), 0);
	usleep(150000);
	assert_int_equal(avoid_processes_text(&words), 102);
	assert_non_null(strstr(text_string(&words), "5000002 (its memory map is locked), "));
	assert_null(strstr(text_string(&words), "5000109"));
	asked_state = (struct avoid_state){.why = NULL};
	usleep(2000);
	assert_false(asks(5000002)); /* nothing is remembered */
	avoid_ask_with(NULL);
	text_done(&words);
}

static void files_are_avoided_below_a_directory(void **state)
{
	struct text words = {0};

	assert_false(avoids_file("/mnt/dead/lib.so"));
	assert_true(avoid_files("/mnt/dead", "an NFS server that does not answer"));
	assert_false(avoid_files("/mnt/dead/below", "the same"));
	assert_true(avoids_file("/mnt/dead/lib.so"));
	assert_true(avoids_file("/mnt/dead"));
	assert_false(avoids_file("/mnt/deadly/lib.so"));
	assert_int_equal(avoid_files_text(&words), 1);
	assert_string_equal(text_string(&words), "/mnt/dead (an NFS server that does not answer)");
	text_done(&words);
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
	assert_false(avoid_files(AVOID_USERS, "why"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(locked_processes_are_asked_for),
		cmocka_unit_test(processes_are_avoided_until_they_end),
		cmocka_unit_test(files_are_avoided_below_a_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
