/* SPDX-License-Identifier: GPL-2.0-or-later */
/* System call names of several architectures, and the descriptor among a call's arguments. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <limits.h>
#include <seccomp.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/names.h"
#include "live/resolve/lookup.h"
#include "proc/syscalls.h"

static void names_by_architecture(void **state)
{
	static const struct {
		uint32_t arch;
		int64_t nr;
		const char *name;
	} rows[] = {
		{SCMP_ARCH_X86_64, 0, "read"},
		{SCMP_ARCH_X86_64, 202, "futex"},
		{SCMP_ARCH_X86, 3, "read"},
		{SCMP_ARCH_X86, 140, "_llseek"},
		{SCMP_ARCH_X86, 192, "mmap2"},
		{SCMP_ARCH_X32, 0, "read"},
		{SCMP_ARCH_X32, 517, "recvfrom"},
		{SCMP_ARCH_AARCH64, 63, "read"},
		{SCMP_ARCH_AARCH64, 98, "futex"},
		{SCMP_ARCH_ARM, 3, "read"},
		{SCMP_ARCH_ARM, 0xf0002, "cacheflush"},
		{SCMP_ARCH_X86_64, 999, "syscall_999"},
		{SCMP_ARCH_AARCH64, 1 << 20, "syscall_1048576"},
		{SCMP_ARCH_X86_64, INT64_MAX, "syscall_9223372036854775807"},
		{SCMP_ARCH_X86_64, 1ll << 32, "syscall_4294967296"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		assert_string_equal(syscall_name_resolve(rows[i].arch, rows[i].nr), rows[i].name);
}

static void names_of_this_machine(void **state)
{
	const char *name = syscall_name(SYS_read, false);

	assert_string_equal(name, "read");
	assert_ptr_equal(name, syscall_name(SYS_read, false));
	assert_ptr_equal(name, name_transient_string("read"));
	assert_string_equal(syscall_name(SYS_futex, false), "futex");
	assert_string_equal(syscall_name(1023, false), "syscall_1023");
	assert_string_equal(syscall_name(1024, false), "syscall_1024");
	assert_null(syscall_name(-1, false));
	assert_null(syscall_name(INT64_MIN, true));
	syscalls_clear();
	assert_ptr_equal(name, syscall_name(SYS_read, false));
}

static void names_of_32_bit_calls(void **state)
{
#if defined(__x86_64__) || defined(__aarch64__)
	assert_string_equal(syscall_name(3, true), "read");
	assert_string_equal(syscall_name(240, true), "futex");
#endif
#ifdef __x86_64__
	assert_string_equal(syscall_name(0x40000000, false), "read");
	assert_string_equal(syscall_name(0x40000000 + 517, false), "recvfrom");
	assert_string_equal(syscall_name(0x40000000 + 2000, false), "syscall_2000");
	assert_string_equal(syscall_name(0x140000000, false), "syscall_5368709120");
#endif
}

static int fd_argument(const char *name)
{
	for (const struct syscall_fd *row = syscall_fds; row->name; row++)
		if (!strcmp(row->name, name))
			return row->arg;
	return -1;
}

static void fd_argument_by_name(void **state)
{
	static const char *const none[] = {"futex",	  "nanosleep", "poll", "select",
					   "openat_",	  "rea",       "",     "socketcall",
					   "close_range", "syscall_5"};

	assert_int_equal(fd_argument("read"), 0);
	assert_int_equal(fd_argument("mmap"), 4);
	assert_int_equal(fd_argument("sendfile"), 1);
	assert_int_equal(fd_argument("epoll_wait"), 0);
	assert_int_equal(fd_argument("_llseek"), 0);
	assert_int_equal(fd_argument("fstatat64"), 0);
	assert_int_equal(fd_argument("symlinkat"), 1);
	for (size_t i = 0; i < sizeof(none) / sizeof(*none); i++)
		assert_int_equal(fd_argument(none[i]), -1);
}

static bool is_known(const char *name)
{
	static const uint32_t archs[] = {SCMP_ARCH_X86_64, SCMP_ARCH_X86, SCMP_ARCH_AARCH64,
					 SCMP_ARCH_ARM};
	/* calls younger than the libseccomp of the oldest distributions; all numbers are above
	 * 450 */
	static const char young[] = " cachestat fchmodat2 getxattrat setxattrat listxattrat "
				    "removexattrat open_tree_attr file_getattr file_setattr "
				    "quotactl_fd process_mrelease ";
	char word[64];

	/* a number, or the negative one of a call that another architecture has; only an unknown
	 * name gives __NR_SCMP_ERROR */
	for (size_t i = 0; i < sizeof(archs) / sizeof(*archs); i++)
		if (seccomp_syscall_resolve_name_arch(archs[i], name) != __NR_SCMP_ERROR)
			return true;
	snprintf(word, sizeof(word), " %s ", name);
	return strstr(young, word) != NULL;
}

static void fd_table_invariants(void **state)
{
	for (const struct syscall_fd *row = syscall_fds; row->name; row++) {
		assert_true(row->arg >= 0 && row->arg < SAMPLE_ARG_COUNT);
		for (const struct syscall_fd *other = syscall_fds; other != row; other++)
			assert_string_not_equal(other->name, row->name);
		if (!is_known(row->name))
			fail_msg("no system call is called %s", row->name);
	}
}

/* Stacks of Linux 6.18, 5.10 and 4.9. */
static void stacks_show_the_side(void **state)
{
	assert_true(syscall_stack_writes(
		"[<0>] wait_woken+0x89/0x90\n[<0>] sk_stream_wait_memory+0x268/0x3b0\n"
		"[<0>] splice_to_socket+0x38f/0x530\n[<0>] direct_splice_actor+0x52/0x190\n"));
	assert_true(syscall_stack_writes("[<0>] pipe_wait_writable+0x7/0x9\n"
					 "[<0>] splice_file_to_pipe+0x7/0x9\n"));
	assert_true(syscall_stack_writes("[<0>] pipe_wait.part.1+0x7/0x9\n"
					 "[<0>] do_splice+0x7/0x9\n"));
	assert_false(syscall_stack_writes("[<0>] pipe_wait+0x7/0x9\n"
					  "[<0>] splice_from_pipe_next+0x7/0x9\n"
					  "[<0>] iter_file_splice_write+0x7/0x9\n"));
	assert_false(syscall_stack_writes("[<0>] folio_wait_bit_common+0x7/0x9\n"
					  "[<0>] filemap_splice_read+0x7/0x9\n"
					  "[<0>] splice_direct_to_actor+0x7/0x9\n"));
	assert_false(syscall_stack_writes(""));
}

static void fd_of_a_call(void **state)
{
	int64_t arg[SAMPLE_ARG_COUNT] = {7, 8, 9, 0, 11, 12};

	assert_int_equal(syscall_fd(SYS_read, false, arg), 7);
	assert_int_equal(syscall_fd(SYS_futex, false, arg), -1);
	assert_int_equal(syscall_fd(SYS_sendfile, false, arg), 8);
	assert_int_equal(syscall_fd_to(SYS_sendfile, false, arg), 7);
	assert_int_equal(syscall_fd_to(SYS_splice, false, arg), 9);
	assert_int_equal(syscall_fd_to(SYS_read, false, arg), -1);
	assert_int_equal(syscall_fd_to(ABSENT, false, arg), -1);
	assert_int_equal(syscall_fd(-1, false, arg), -1);
	assert_int_equal(syscall_fd(ABSENT, false, arg), -1);
	assert_int_equal(syscall_fd(INT64_MAX, false, arg), -1);
	assert_int_equal(syscall_fd(SYS_mmap, false, arg), 11);
	arg[3] = MAP_PRIVATE | MAP_ANONYMOUS; /* the kernel ignores the descriptor */
	assert_int_equal(syscall_fd(SYS_mmap, false, arg), -1);
	arg[0] = -100; /* AT_FDCWD */
	assert_int_equal(syscall_fd(SYS_openat, false, arg), -1);
	arg[0] = 0xffffff9c; /* AT_FDCWD in the lower half of a register */
	assert_int_equal(syscall_fd(SYS_openat, false, arg), -1);
	arg[0] = 0x100000005;
	assert_int_equal(syscall_fd(SYS_read, false, arg), 5);
	arg[0] = INT_MAX;
	assert_int_equal(syscall_fd(SYS_read, false, arg), INT_MAX);
	arg[0] = INT64_MIN;
	assert_int_equal(syscall_fd(SYS_read, false, arg), 0);
	/* these numbers on i386 and on ARM */
	arg[0] = 7;
	assert_int_equal(syscall_fd(3, true, arg), 7);
	arg[3] = 0;
	assert_int_equal(syscall_fd(192, true, arg), 11); /* mmap2 */
#ifdef __x86_64__
	assert_int_equal(syscall_fd(90, true, arg), -1); /* old mmap: arguments are in memory */
	assert_int_equal(syscall_fd(0x40000000 + 517, false, arg), 7);
#endif
}

/* Transient names are freed with the lookup that made them. */
static void names_go_with_the_lookup(void **state)
{
	struct lookup *lookup = lookup_new("/proc");

	assert_string_equal(syscall_name(SYS_read, false), "read");
	lookup_free(lookup);
	names_transient_clear();
	name_transient_string("fill"); /* text that most likely reuses the address of "read" */
	assert_string_equal(syscall_name(SYS_read, false), "read");
	assert_ptr_equal(syscall_name(SYS_read, false), name_transient_string("read"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_by_architecture), cmocka_unit_test(names_of_this_machine),
		cmocka_unit_test(names_of_32_bit_calls), cmocka_unit_test(fd_argument_by_name),
		cmocka_unit_test(fd_table_invariants),	 cmocka_unit_test(fd_of_a_call),
		cmocka_unit_test(stacks_show_the_side),	 cmocka_unit_test(names_go_with_the_lookup),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	syscalls_clear();
	names_clear();
	return failed;
}
