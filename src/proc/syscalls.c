/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/syscalls.h"
#include "proc/proc.h"
#include "proc/syscall_fds.h"
#include "proc/syscall_paths.h"
#include "base/names.h"

#include <limits.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The highest number of any architecture is below 500 today; ARM's private calls are at 0xf0000. */
#define CALLS_CACHED 1024
#define STACK_BYTES 8192
#define X32_BIT 0x40000000 /* __X32_SYSCALL_BIT of asm/unistd.h */

enum call_abi { ABI_NATIVE, ABI_COMPAT, ABI_X32, ABI_COUNT };

struct call {
	const char *name; /* NULL: not resolved yet */
	int fd_arg, fd_to_arg;
	bool maps;
	struct syscall_path path;
};

static struct call calls[ABI_COUNT][CALLS_CACHED];

/* Architectures of 64-bit kernels, and of the 32-bit system calls that they also take. */
/* clang-format off */
static const struct {
	uint32_t native, compat;
} compat_archs[] = {
	{SCMP_ARCH_X86_64, SCMP_ARCH_X86},
	{SCMP_ARCH_AARCH64, SCMP_ARCH_ARM},
	{SCMP_ARCH_S390X, SCMP_ARCH_S390},
	{SCMP_ARCH_PPC64, SCMP_ARCH_PPC},
	{SCMP_ARCH_MIPS64, SCMP_ARCH_MIPS},
	{SCMP_ARCH_MIPSEL64, SCMP_ARCH_MIPSEL},
	{SCMP_ARCH_PARISC64, SCMP_ARCH_PARISC},
};
/* clang-format on */

static uint32_t arch_of(enum call_abi abi)
{
	uint32_t native = seccomp_arch_native();

	if (abi == ABI_X32)
		return SCMP_ARCH_X32;
	for (size_t i = 0; abi == ABI_COMPAT && i < sizeof(compat_archs) / sizeof(*compat_archs);
	     i++)
		if (compat_archs[i].native == native)
			return compat_archs[i].compat;
	return native;
}

const char *syscall_name_resolve(uint32_t arch, int64_t nr)
{
	char *known = nr <= INT_MAX ? seccomp_syscall_resolve_num_arch(arch, nr) : NULL;
	char number[40];
	const char *name;

	snprintf(number, sizeof(number), "syscall_%lld", (long long)nr);
	name = name_transient_string(known ? known : number);
	free(known);
	return name;
}

static int fd_arg_find(const struct syscall_fd *row, const char *name)
{
	for (; row->name; row++)
		if (!strcmp(row->name, name))
			return row->arg;
	return -1;
}

int syscall_fd_arg(const char *name)
{
	return fd_arg_find(syscall_fds, name);
}

static struct call call_resolve(enum call_abi abi, int64_t nr)
{
	struct call call = {.name = syscall_name_resolve(arch_of(abi), nr)};

	call.maps = !strcmp(call.name, "mmap") || !strcmp(call.name, "mmap2");
	call.fd_arg = fd_arg_find(syscall_fds, call.name);
	call.fd_to_arg = fd_arg_find(syscall_fds_to, call.name);
	call.path = (struct syscall_path){-1, -1};
	for (const struct syscall_path_row *row = syscall_paths; row->name; row++)
		if (!strcmp(row->name, call.name))
			call.path = row->path;
	/* the old mmap of 32-bit calls takes one pointer to its arguments */
	if (abi == ABI_COMPAT && !strcmp(call.name, "mmap"))
		call.fd_arg = -1;
	return call;
}

/* Finds or resolves a call; valid until the next call_find(). */
static const struct call *call_find(int64_t nr, bool compat)
{
	static const struct call none = {.fd_arg = -1, .fd_to_arg = -1, .path = {-1, -1}};
	static struct call rare;
	enum call_abi abi = compat ? ABI_COMPAT : ABI_NATIVE;
	struct call *call;

	if (!compat && nr & X32_BIT && nr <= INT_MAX && seccomp_arch_native() == SCMP_ARCH_X86_64) {
		abi = ABI_X32;
		nr &= ~X32_BIT;
	}
	if (nr < 0)
		return &none;
	call = nr < CALLS_CACHED ? &calls[abi][nr] : &rare;
	if (!call->name || call == &rare)
		*call = call_resolve(abi, nr);
	return call;
}

const char *syscall_name(int64_t nr, bool compat)
{
	return call_find(nr, compat)->name;
}

/* The argument as the kernel takes it, an int: the register's upper half is the caller's garbage.
 */
static int fd_of_arg(int64_t arg)
{
	int fd = (int)(uint32_t)arg;

	return fd < 0 ? -1 : fd;
}

int syscall_fd(int64_t nr, bool compat, const int64_t *arg)
{
	const struct call *call = call_find(nr, compat);

	if (call->fd_arg < 0 || (call->maps && arg[3] & MAP_ANONYMOUS))
		return -1;
	return fd_of_arg(arg[call->fd_arg]);
}

int syscall_fd_to(int64_t nr, bool compat, const int64_t *arg)
{
	const struct call *call = call_find(nr, compat);

	return call->fd_to_arg < 0 ? -1 : fd_of_arg(arg[call->fd_to_arg]);
}

/* True if a function of one of these names, with spaces around each, is on the stack. */
static bool stack_has(const char *stack, const char *names)
{
	char name[64];

	for (const char *at = stack; (at = strstr(at, "] "));) {
		at += 2;
		snprintf(name, sizeof(name), " %.*s ", (int)strcspn(at, "+.\n"), at);
		if (strstr(names, name))
			return true;
	}
	return false;
}

bool syscall_stack_writes(const char *stack)
{
	/* a write by splice(2) may also wait for its pipe to have data */
	if (stack_has(stack, " splice_from_pipe_next pipe_wait_readable ipipe_prep "))
		return false;
	return stack_has(stack, " direct_splice_actor iter_file_splice_write splice_to_socket "
				"generic_splice_sendpage splice_to_pipe wait_for_space "
				"pipe_wait_writable opipe_prep pipe_wait ");
}

int syscall_fd_waiting(const char *root, const struct sample *sample, bool compat)
{
	int fd = syscall_fd(sample->call.nr, compat, sample->call.arg);
	int to = syscall_fd_to(sample->call.nr, compat, sample->call.arg);
	char stack[STACK_BYTES];

	if (to < 0 || (sample->now.state != STATE_SLEEP && sample->now.state != STATE_DISK))
		return fd;
	if (proc_file_read(root, sample->thread.pid, sample->thread.tid, "stack", stack,
			   sizeof(stack)) <= 0)
		return -1;
	return syscall_stack_writes(stack) ? to : fd;
}

struct syscall_path syscall_path(int64_t nr, bool compat)
{
	return call_find(nr, compat)->path;
}

void syscalls_clear(void)
{
	memset(calls, 0, sizeof(calls));
}
