/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Loading of programs by a kernel of 4.9, whose bpf(2) this test simulates. */
#include "unit.h"
#include "kernel/bpf_call.h"
#include "kernel/host.h"

#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#define DESCRIPTOR 77
#define ATTR_BYTES offsetof(union bpf_attr, prog_name) /* sizeof(union bpf_attr) of 4.9 */

static unsigned int code_wanted; /* LINUX_VERSION_CODE */

/* Behaves as kernel/bpf/syscall.c of 4.9: bpf_check_uarg_tail_zero(), bpf_prog_load(). */
static long old_load(const union bpf_attr *attr, size_t size)
{
	for (size_t i = ATTR_BYTES; i < size; i++)
		if (((const char *)attr)[i])
			return -E2BIG;
	if (attr->prog_type == BPF_PROG_TYPE_KPROBE && attr->kern_version != code_wanted)
		return -EINVAL;
	return DESCRIPTOR;
}

/* CHECK_ATTR(BPF_MAP_CREATE): what follows map_flags must be zero. */
static long old_map(const union bpf_attr *attr, size_t size)
{
	const size_t known = offsetof(union bpf_attr, map_flags) + sizeof(attr->map_flags);

	for (size_t i = known; i < size; i++)
		if (((const char *)attr)[i])
			return i < ATTR_BYTES ? -EINVAL : -E2BIG;
	return DESCRIPTOR;
}

/* Replaces syscall(2) at link time; the code under test calls only bpf(2). */
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
	const union bpf_attr *attr;
	va_list list;
	int command;
	long result;

	va_start(list, number);
	command = va_arg(list, int);
	attr = va_arg(list, const union bpf_attr *);
	assert_int_equal(number, SYS_bpf);
	assert_true(command == BPF_PROG_LOAD || command == BPF_MAP_CREATE);
	result = command == BPF_PROG_LOAD ? old_load(attr, va_arg(list, size_t))
					  : old_map(attr, va_arg(list, size_t));
	va_end(list);
	errno = result < 0 ? (int)-result : 0;
	return result < 0 ? -1 : result;
}

static const struct bpf_insn nothing[] = {{.code = BPF_JMP | BPF_EXIT}};

static int load(enum bpf_prog_type type, const char *name)
{
	return bpf_call_load_described(&(struct bpf_load){
		.type = type, .instructions = nothing, .count = 1, .name = name});
}

static void kprobes_carry_the_version(void **state)
{
	struct utsname name;

	assert_int_equal(uname(&name), 0);
	code_wanted = version_code_read(name.release);
	assert_int_not_equal(code_wanted, 0);
	assert_int_equal(bpf_call_load(BPF_PROG_TYPE_KPROBE, nothing, 1), DESCRIPTOR);
	assert_int_equal(load(BPF_PROG_TYPE_KPROBE, NULL), DESCRIPTOR);
	code_wanted++;
	assert_int_equal(load(BPF_PROG_TYPE_KPROBE, NULL), -EINVAL);
}

static void names_are_left_out(void **state)
{
	struct utsname name;

	assert_int_equal(uname(&name), 0);
	code_wanted = version_code_read(name.release);
	assert_int_equal(load(BPF_PROG_TYPE_KPROBE, "switch"), DESCRIPTOR);
	assert_int_equal(load(BPF_PROG_TYPE_TRACEPOINT, "switch"), DESCRIPTOR);
	assert_int_equal(load(BPF_PROG_TYPE_PERF_EVENT, "a_name_that_is_too_long"), DESCRIPTOR);
}

static void maps_may_have_names(void **state)
{
	const struct bpf_map_made map = {"ts_changed", BPF_MAP_TYPE_ARRAY, 4, 8, 2, 0};

	assert_int_equal(bpf_call_map_described(&map), DESCRIPTOR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(maps_may_have_names),
		cmocka_unit_test(kprobes_carry_the_version),
		cmocka_unit_test(names_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
