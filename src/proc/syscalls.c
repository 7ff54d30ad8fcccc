/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/syscalls.h"
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
#define X32_BIT 0x40000000 /* __X32_SYSCALL_BIT of asm/unistd.h */

enum call_abi { ABI_NATIVE, ABI_COMPAT, ABI_X32, ABI_COUNT };

struct call {
	const char *name; /* NULL: not resolved yet */
	int fd_arg;
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

static struct call call_resolve(enum call_abi abi, int64_t nr)
{
	struct call call = {.name = syscall_name_resolve(arch_of(abi), nr)};

	call.maps = !strcmp(call.name, "mmap") || !strcmp(call.name, "mmap2");
	call.fd_arg = syscall_fd_arg(call.name);
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
	static const struct call none = {.fd_arg = -1, .path = {-1, -1}};
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

int syscall_fd_arg(const char *name)
{
	for (const struct syscall_fd *row = syscall_fds; row->name; row++)
		if (!strcmp(row->name, name))
			return row->arg;
	return -1;
}

int syscall_fd(int64_t nr, bool compat, const int64_t *arg)
{
	const struct call *call = call_find(nr, compat);
	int fd;

	if (call->fd_arg < 0 || (call->maps && arg[3] & MAP_ANONYMOUS))
		return -1;
	/* the kernel takes an int: the register's upper half is the caller's garbage */
	fd = (int)(uint32_t)arg[call->fd_arg];
	return fd < 0 ? -1 : fd;
}

struct syscall_path syscall_path(int64_t nr, bool compat)
{
	return call_find(nr, compat)->path;
}

void syscalls_clear(void)
{
	memset(calls, 0, sizeof(calls));
}
