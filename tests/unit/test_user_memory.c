/* SPDX-License-Identifier: GPL-2.0-or-later */
/* proc/user_memory: memory of this process, and of a child that ends. */
#include "proc/user_memory.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static long page_bytes;

/* Makes two pages, of which only the first one is present. */
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

/* Each read has the present contents; the files remain open for one scan. */
static void again_in_a_scan(void **state)
{
	struct user_memory open = {0};
	volatile uint32_t word = 1;
	uint32_t read;

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

/* Makes a child whose pages begin with that word. */
static pid_t child_make(char *pages, const char *word)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (child)
		return child;
	memcpy(pages, word, strlen(word));
	for (;;)
		pause();
}

static void child_end(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static ssize_t word_read(struct user_memory *open, pid_t pid, int64_t scan_ns, const char *pages,
			 char bytes[5])
{
	memset(bytes, 0, 5);
	return user_memory_read_again(open, "/proc", pid, pid, scan_ns, (uintptr_t)pages, bytes, 4);
}

static void child_await(struct user_memory *open, pid_t child, int64_t scan_ns, const char *pages,
			const char *word)
{
	char bytes[5];

	do
		assert_int_equal(word_read(open, child, scan_ns, pages, bytes), 4);
	while (strcmp(bytes, word) != 0);
}

/* Open memory of a process that has ended is not used in the next scan. */
static void process_that_ends(void **state)
{
	char *pages = pages_make(), bytes[5];
	struct user_memory open = {0};
	pid_t child = child_make(pages, "mine");

	child_await(&open, child, 1000, pages, "mine");
	assert_int_equal(word_read(&open, getpid(), 1000, pages, bytes), 4);
	assert_string_equal(bytes, "xxxx");
	child_end(child);
	assert_int_equal(word_read(&open, child, 1000, pages, bytes), -EFAULT);
	assert_int_equal(word_read(&open, child, 2000, pages, bytes), -ENOENT);
	user_memory_sweep(&open, 2000);
	assert_int_equal(files_open_count(&open), 0);
	munmap(pages, 2 * (size_t)page_bytes);
}

/* More processes than slots: each read is of its own process, and as many are open as allowed. */
static void many_processes(void **state)
{
	enum { CHILDREN = USER_MEMORY_FILES + 3 };
	char *pages = pages_make(), bytes[5], words[CHILDREN][8];
	struct user_memory open = {0};
	pid_t children[CHILDREN];

	for (int i = 0; i < CHILDREN; i++) {
		snprintf(words[i], sizeof(words[i]), "no%02d", i);
		children[i] = child_make(pages, words[i]);
	}
	for (int i = 0; i < CHILDREN; i++)
		child_await(&open, children[i], 1000, pages, words[i]);
	for (int i = CHILDREN; i--;) {
		assert_int_equal(word_read(&open, children[i], 1000, pages, bytes), 4);
		assert_string_equal(bytes, words[i]);
	}
	assert_int_equal(files_open_count(&open), USER_MEMORY_FILES);
	user_memory_sweep(&open, INT64_MAX);
	assert_int_equal(files_open_count(&open), 0);
	for (int i = 0; i < CHILDREN; i++)
		child_end(children[i]);
	munmap(pages, 2 * (size_t)page_bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_that_are_there),
		cmocka_unit_test(again_in_a_scan),
		cmocka_unit_test(process_that_ends),
		cmocka_unit_test(many_processes),
	};

	/* addresses of the emulated program are unknown to the kernel */
	if (getenv("TSNAP_TEST_EMULATED"))
		return 77;
	page_bytes = sysconf(_SC_PAGESIZE);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
