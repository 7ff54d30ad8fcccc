/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Subject of a system call: a child has this process' memory and descriptors. */
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "keeper/blocked_call.h"
#include "base/host_file.h"

#define OPENAT2 437

static pid_t child;
static struct blocked_subject subject;

static int child_start(void **state)
{
	child = fork();
	if (!child)
		for (;;)
			pause();
	return child < 0;
}

static int child_end(void **state)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return 0;
}

static bool find(long number, uint64_t one, uint64_t two)
{
	const struct blocked_call call = {.number = number, .arguments = {one, two}};

	return blocked_subject_find(child, child, &call, &subject);
}

static bool find_path(long number, int directory, const char *path)
{
	return find(number, (uint64_t)directory, (uint64_t)(uintptr_t)path);
}

/* Subjects that are memory, and files of /proc by their whole name, below a directory and by a
 * descriptor. */
static void processes(void **state)
{
	assert_true(find(SYS_process_vm_readv, 4711, 0));
	assert_int_equal(subject.pid, 4711);
	assert_string_equal(subject.why, "its memory map is locked");
	assert_true(find_path(SYS_openat, AT_FDCWD, "/proc/4711/maps"));
	assert_int_equal(subject.pid, 4711);
	assert_string_equal(subject.why, "its memory map is locked");
	assert_true(find_path(SYS_openat, AT_FDCWD, "/proc/12/task/13/exe"));
	assert_int_equal(subject.pid, 12);
	assert_string_equal(subject.why, "it does not answer");
	assert_true(find_path(OPENAT2, AT_FDCWD, "/proc/12/ns/net"));
	assert_int_equal(subject.pid, 12);
	assert_false(find_path(SYS_openat, AT_FDCWD, "/proc/meminfo"));
	assert_false(find_path(SYS_openat, AT_FDCWD, "/proc/4711x/maps"));
}

static void files(void **state)
{
	int directory = open("/usr", O_PATH | O_DIRECTORY);
	char path[64], text[64];

	/* only a child forked now has the descriptor and the path's bytes */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", directory);
	snprintf(text, sizeof(text), "lib/one");
	child_end(NULL);
	assert_int_equal(child_start(NULL), 0);
	assert_true(find_path(SYS_openat, AT_FDCWD, "/mnt/nfs/file"));
	assert_int_equal(subject.pid, 0);
	assert_string_equal(subject.name, "/mnt/nfs/file");
	assert_true(find_path(SYS_openat, directory, text));
	assert_string_equal(subject.name, "/usr/lib/one");
	assert_true(find_path(SYS_newfstatat, directory, ""));
	assert_string_equal(subject.name, "/usr");
	assert_true(find(SYS_read, (uint64_t)directory, 0));
	assert_string_equal(subject.name, "/usr");
	assert_true(find_path(SYS_openat, AT_FDCWD, path));
	assert_string_equal(subject.name, "/usr");
	close(directory);
}

/* Calls that tsnap itself has begun end, however long they take. */
static void others(void **state)
{
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	child_end(NULL);
	assert_int_equal(child_start(NULL), 0);
	assert_false(find(SYS_read, (uint64_t)fds[0], 0));
	assert_false(find(SYS_write, (uint64_t)fds[1], 0));
	assert_false(find(SYS_nanosleep, 1, 0));
	assert_false(find(SYS_read, 1000, 0)); /* no such descriptor */
	assert_false(find_path(SYS_openat, AT_FDCWD, "/dev/pts/0"));
	assert_false(find_path(SYS_openat, AT_FDCWD, "/sys/kernel/btf/vmlinux"));
	assert_false(find(SYS_openat, 0, 8)); /* a path that can't be read */
	close(fds[0]);
	close(fds[1]);
}

static void calls_are_read(void **state)
{
	struct blocked_call call = {.number = 0};

	assert_int_equal(shown_pid(), getpid());
	for (int i = 0; i < 1000 && !blocked_call_read(child, child, &call); i++)
		usleep(10000);
	assert_int_not_equal(call.number, 0);
	assert_false(call.reads);
	assert_false(blocked_subject_find(child, child, &call, &subject)); /* pause */
	assert_false(blocked_call_read(getpid(), 1, &call));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(processes, child_start, child_end),
		cmocka_unit_test_setup_teardown(files, child_start, child_end),
		cmocka_unit_test_setup_teardown(others, child_start, child_end),
		cmocka_unit_test_setup_teardown(calls_are_read, child_start, child_end),
	};

	if (getenv("TSNAP_TEST_EMULATED")) /* the emulator's calls are not the kernel's */
		return 77;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
