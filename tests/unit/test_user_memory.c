/* SPDX-License-Identifier: GPL-2.0-or-later */
/* proc/user_memory: of this process, and of a child that ends. */
#include "proc/user_memory.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static long page_bytes;

/* Two pages, of which only the first one is there. */
static char *pages_make(void)
{
	char *pages = mmap(NULL, 2 * (size_t)page_bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(pages, MAP_FAILED);
	madvise(pages, 2 * (size_t)page_bytes, MADV_NOHUGEPAGE);
	memset(pages, 'x', (size_t)page_bytes);
	return pages;
}

static void pages_that_are_there(void **state)
{
	char *pages = pages_make(), bytes[16];
	uint64_t end = (uintptr_t)pages + (uint64_t)page_bytes;

	(void)state;
	assert_int_equal(
		user_memory_read("/proc", getpid(), getpid(), end - 4, bytes, sizeof(bytes)), 4);
	assert_memory_equal(bytes, "xxxx", 4);
	assert_int_equal(user_memory_read("/proc", getpid(), getpid(), end, bytes, sizeof(bytes)),
			 -EFAULT);
	assert_int_equal(
		user_memory_read("/proc", getpid(), getpid(), UINT64_MAX - 4, bytes, sizeof(bytes)),
		-EFAULT);
	assert_int_equal(user_text_read("/proc", getpid(), getpid(), end - 4, bytes, sizeof(bytes)),
			 -EFAULT);
	pages[page_bytes - 1] = '\0';
	assert_int_equal(user_text_read("/proc", getpid(), getpid(), end - 4, bytes, sizeof(bytes)),
			 3);
	munmap(pages, 2 * (size_t)page_bytes);
}

static int files_open_count(const struct user_memory *open)
{
	int count = 0;

	for (int i = 0; i < USER_MEMORY_FILES; i++)
		count += open->files[i].scan_ns != 0;
	return count;
}

/* Each read has what is there now; the files stay for one scan. */
static void again_in_a_scan(void **state)
{
	struct user_memory open = {0};
	volatile uint32_t word = 1;
	uint32_t read;

	(void)state;
	for (; word < 4; word++) {
		assert_int_equal(user_memory_read_again(&open, "/proc", getpid(), getpid(), 1000,
							(uintptr_t)&word, &read, sizeof(read)),
				 sizeof(read));
		assert_int_equal(read, word);
		assert_int_equal(files_open_count(&open), 1);
	}
	user_memory_sweep(&open, 1000);
	assert_int_equal(files_open_count(&open), 1);
	user_memory_sweep(&open, 2000);
	assert_int_equal(files_open_count(&open), 0);
}

/* A process with the same place, and one that is no more. */
static void other_processes(void **state)
{
	char *pages = pages_make(), bytes[4];
	struct user_memory open = {0};
	pid_t child;
	ssize_t got;

	(void)state;
	do { /* its own takes the place of this process's */
		child = fork();
		if (!child) {
			memcpy(pages, "mine", 4);
			for (;;)
				pause();
		}
		if (child % USER_MEMORY_FILES == getpid() % USER_MEMORY_FILES)
			break;
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
	} while (child > 0);
	assert_true(child > 0);
	do {
		assert_int_equal(user_memory_read_again(&open, "/proc", getpid(), getpid(), 1000,
							(uintptr_t)pages, bytes, 4),
				 4);
		assert_memory_equal(bytes, "xxxx", 4);
		got = user_memory_read_again(&open, "/proc", child, child, 1000, (uintptr_t)pages,
					     bytes, 4);
	} while (got == 4 && memcmp(bytes, "mine", 4) != 0);
	assert_int_equal(got, 4);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_int_equal(user_memory_read_again(&open, "/proc", child, child, 1000,
						(uintptr_t)pages, bytes, 4),
			 -EFAULT);
	assert_int_equal(user_memory_read_again(&open, "/proc", child, child, 2000,
						(uintptr_t)pages, bytes, 4),
			 -ENOENT);
	assert_int_equal(files_open_count(&open), 0);
	munmap(pages, 2 * (size_t)page_bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_that_are_there),
		cmocka_unit_test(again_in_a_scan),
		cmocka_unit_test(other_processes),
	};

	/* addresses of the emulated program are not those that the kernel knows */
	if (getenv("TSNAP_TEST_EMULATED"))
		return 77;
	page_bytes = sysconf(_SC_PAGESIZE);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
