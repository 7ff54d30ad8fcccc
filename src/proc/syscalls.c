/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/syscalls.h"
#include "base/names.h"
#include "proc/proc.h"
#include "proc/user_memory.h"
#include "sample/sample.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* System calls of all architectures, 32-bit ones too: syscalls(2) and the tables of Linux 6.17.
 * Left out: calls with an array or a set of descriptors (poll, select), with a range of them
 * (close_range), with descriptors in memory (socketcall, io_submit), and with an argument that is a
 * descriptor only sometimes (waitid, quotactl). */
/* clang-format off */
const struct syscall_fd syscall_fds[] = {
	/* reading, writing */
	{"read", 0}, {"write", 0}, {"readv", 0}, {"writev", 0}, {"pread64", 0}, {"pwrite64", 0},
	{"preadv", 0}, {"pwritev", 0}, {"preadv2", 0}, {"pwritev2", 0}, {"readahead", 0},
	{"lseek", 0}, {"_llseek", 0}, {"sendfile", 1}, {"sendfile64", 1},
	{"splice", 0}, {"tee", 0}, {"vmsplice", 0}, {"copy_file_range", 0},
	/* syncing, space, locks, mapping */
	{"fsync", 0}, {"fdatasync", 0}, {"syncfs", 0}, {"sync_file_range", 0},
	{"sync_file_range2", 0}, {"arm_sync_file_range", 0}, {"fadvise64", 0},
	{"fadvise64_64", 0}, {"arm_fadvise64_64", 0}, {"fallocate", 0}, {"ftruncate", 0},
	{"ftruncate64", 0}, {"flock", 0}, {"fcntl", 0}, {"fcntl64", 0}, {"ioctl", 0},
	{"mmap", 4}, {"mmap2", 4}, {"cachestat", 0},
	/* the descriptor itself */
	{"close", 0}, {"dup", 0}, {"dup2", 0}, {"dup3", 0},
	/* attributes */
	{"fstat", 0}, {"fstat64", 0}, {"oldfstat", 0}, {"fstatfs", 0}, {"fstatfs64", 0},
	{"fchmod", 0}, {"fchown", 0}, {"fchown32", 0}, {"fchdir", 0}, {"fgetxattr", 0},
	{"fsetxattr", 0}, {"flistxattr", 0}, {"fremovexattr", 0}, {"quotactl_fd", 0},
	/* directories, and names relative to one */
	{"getdents", 0}, {"getdents64", 0}, {"readdir", 0}, {"openat", 0}, {"openat2", 0},
	{"open_by_handle_at", 0}, {"name_to_handle_at", 0}, {"mkdirat", 0}, {"mknodat", 0},
	{"unlinkat", 0}, {"renameat", 0}, {"renameat2", 0}, {"linkat", 0}, {"symlinkat", 1},
	{"readlinkat", 0}, {"newfstatat", 0}, {"fstatat64", 0}, {"statx", 0}, {"faccessat", 0},
	{"faccessat2", 0}, {"fchmodat", 0}, {"fchmodat2", 0}, {"fchownat", 0}, {"utimensat", 0},
	{"utimensat_time64", 0}, {"futimesat", 0}, {"getxattrat", 0}, {"setxattrat", 0},
	{"listxattrat", 0}, {"removexattrat", 0}, {"file_getattr", 0}, {"file_setattr", 0},
	{"execveat", 0},
	/* mounts */
	{"open_tree", 0}, {"open_tree_attr", 0}, {"move_mount", 0}, {"mount_setattr", 0},
	{"fsconfig", 0}, {"fsmount", 0}, {"fspick", 0},
	/* sockets */
	{"accept", 0}, {"accept4", 0}, {"bind", 0}, {"connect", 0}, {"listen", 0},
	{"shutdown", 0}, {"recv", 0}, {"recvfrom", 0}, {"recvmsg", 0}, {"recvmmsg", 0},
	{"recvmmsg_time64", 0}, {"send", 0}, {"sendto", 0}, {"sendmsg", 0}, {"sendmmsg", 0},
	{"getsockname", 0}, {"getpeername", 0}, {"getsockopt", 0}, {"setsockopt", 0},
	/* events, timers, queues */
	{"epoll_wait", 0}, {"epoll_pwait", 0}, {"epoll_pwait2", 0}, {"epoll_ctl", 0},
	{"io_uring_enter", 0}, {"io_uring_register", 0}, {"inotify_add_watch", 0},
	{"inotify_rm_watch", 0}, {"fanotify_mark", 0}, {"signalfd", 0}, {"signalfd4", 0},
	{"timerfd_settime", 0}, {"timerfd_settime64", 0}, {"timerfd_gettime", 0},
	{"timerfd_gettime64", 0}, {"mq_timedsend", 0}, {"mq_timedsend_time64", 0},
	{"mq_timedreceive", 0}, {"mq_timedreceive_time64", 0}, {"mq_notify", 0},
	{"mq_getsetattr", 0}, {"perf_event_open", 3},
	/* processes, modules */
	{"pidfd_send_signal", 0}, {"pidfd_getfd", 0}, {"process_madvise", 0},
	{"process_mrelease", 0}, {"setns", 0}, {"landlock_add_rule", 0},
	{"landlock_restrict_self", 0}, {"finit_module", 0}, {"kexec_file_load", 0},
	{NULL, -1},
};

/* Calls with two descriptors that move data: the one that data goes to. */
static const struct syscall_fd syscall_fds_to[] = {
	{"sendfile", 0}, {"sendfile64", 0}, {"splice", 2}, {"tee", 1}, {"copy_file_range", 2},
	{NULL, -1},
};

/* Calls with a descriptor only if their flags, that argument, lack MAP_ANONYMOUS. */
static const struct syscall_fd syscall_flags[] = {{"mmap", 3}, {"mmap2", 3}, {NULL, -1}};

/* 32-bit calls with one argument, a pointer to those that the table above is about. */
static const struct syscall_fd syscall_packed[] = {{"mmap", 0}, {NULL, -1}};
/* clang-format on */

/* System calls of all architectures: syscalls(2). Of two paths, the one that exists already; of
 * mount, the mount point. */
/* clang-format off */
static const struct syscall_path_row {
	const char *name;
	struct syscall_path path;
} syscall_paths[] = {
	{"open", {0, -1}}, {"creat", {0, -1}}, {"openat", {1, 0}}, {"openat2", {1, 0}},
	{"execve", {0, -1}}, {"execveat", {1, 0}}, {"uselib", {0, -1}},
	{"stat", {0, -1}}, {"lstat", {0, -1}}, {"stat64", {0, -1}}, {"lstat64", {0, -1}},
	{"oldstat", {0, -1}}, {"oldlstat", {0, -1}}, {"newfstatat", {1, 0}},
	{"fstatat64", {1, 0}}, {"statx", {1, 0}}, {"statfs", {0, -1}}, {"statfs64", {0, -1}},
	{"access", {0, -1}}, {"faccessat", {1, 0}}, {"faccessat2", {1, 0}},
	{"readlink", {0, -1}}, {"readlinkat", {1, 0}}, {"name_to_handle_at", {1, 0}},
	{"truncate", {0, -1}}, {"truncate64", {0, -1}},
	{"chmod", {0, -1}}, {"fchmodat", {1, 0}}, {"fchmodat2", {1, 0}},
	{"chown", {0, -1}}, {"lchown", {0, -1}}, {"chown32", {0, -1}}, {"lchown32", {0, -1}},
	{"fchownat", {1, 0}},
	{"utime", {0, -1}}, {"utimes", {0, -1}}, {"futimesat", {1, 0}}, {"utimensat", {1, 0}},
	{"utimensat_time64", {1, 0}},
	{"getxattr", {0, -1}}, {"lgetxattr", {0, -1}}, {"setxattr", {0, -1}},
	{"lsetxattr", {0, -1}}, {"listxattr", {0, -1}}, {"llistxattr", {0, -1}},
	{"removexattr", {0, -1}}, {"lremovexattr", {0, -1}}, {"getxattrat", {1, 0}},
	{"setxattrat", {1, 0}}, {"listxattrat", {1, 0}}, {"removexattrat", {1, 0}},
	{"file_getattr", {1, 0}}, {"file_setattr", {1, 0}},
	{"mkdir", {0, -1}}, {"mkdirat", {1, 0}}, {"rmdir", {0, -1}}, {"mknod", {0, -1}},
	{"mknodat", {1, 0}}, {"unlink", {0, -1}}, {"unlinkat", {1, 0}},
	{"rename", {0, -1}}, {"renameat", {1, 0}}, {"renameat2", {1, 0}},
	{"link", {0, -1}}, {"linkat", {1, 0}}, {"symlink", {1, -1}}, {"symlinkat", {2, 1}},
	{"chdir", {0, -1}}, {"chroot", {0, -1}}, {"pivot_root", {0, -1}},
	{"mount", {1, -1}}, {"umount", {0, -1}}, {"umount2", {0, -1}}, {"open_tree", {1, 0}},
	{"open_tree_attr", {1, 0}}, {"move_mount", {1, 0}}, {"mount_setattr", {1, 0}},
	{"fspick", {1, 0}}, {"swapon", {0, -1}}, {"swapoff", {0, -1}}, {"acct", {0, -1}},
	{"quotactl", {1, -1}}, {"inotify_add_watch", {1, -1}}, {"fanotify_mark", {4, 3}},
	{NULL, {-1, -1}},
};
/* clang-format on */

/* Codes inside the kernel (include/linux/errno.h) that reach no caller: after a signal the kernel
 * turns them into EINTR, or restarts the call. */
static const struct {
	uint32_t number;
	const char *name;
} restarts[] = {
	{512, "ERESTARTSYS"}, {513, "ERESTARTNOINTR"},	      {514, "ERESTARTNOHAND"},
	{515, "ENOIOCTLCMD"}, {516, "ERESTART_RESTARTBLOCK"}, {517, "EPROBE_DEFER"},
	{529, "EIOCBQUEUED"},
};

const char *error_name(uint32_t number)
{
	char digits[16];

	if (!number)
		return NULL;
	for (size_t i = 0; i < sizeof(restarts) / sizeof(*restarts); i++)
		if (restarts[i].number == number)
			return name_of_string(restarts[i].name);
#if __GLIBC_PREREQ(2, 32)
	if (strerrorname_np((int)number))
		return name_of_string(strerrorname_np((int)number));
#endif
	snprintf(digits, sizeof(digits), "%u", number);
	return name_of_string(digits);
}

/* The highest number of any architecture is below 500 today; ARM's private calls are at 0xf0000. */
#define CALLS_CACHED 1024
#define STACK_BYTES 8192
#define X32_BIT 0x40000000 /* __X32_SYSCALL_BIT of asm/unistd.h */

enum call_abi { ABI_NATIVE, ABI_COMPAT, ABI_X32, ABI_COUNT };

struct call {
	const char *name; /* NULL: not resolved yet */
	int fd_arg, fd_to_arg, flags_arg;
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

static struct call call_resolve(enum call_abi abi, int64_t nr)
{
	struct call call = {.name = syscall_name_resolve(arch_of(abi), nr)};

	call.flags_arg = fd_arg_find(syscall_flags, call.name);
	call.fd_arg = fd_arg_find(syscall_fds, call.name);
	call.fd_to_arg = fd_arg_find(syscall_fds_to, call.name);
	call.path = (struct syscall_path){-1, -1};
	for (const struct syscall_path_row *row = syscall_paths; row->name; row++)
		if (!strcmp(row->name, call.name))
			call.path = row->path;
	if (abi == ABI_COMPAT && fd_arg_find(syscall_packed, call.name) >= 0)
		call.fd_arg = -1;
	return call;
}

/* Finds or resolves a call; valid until the next call_find(). */
static const struct call *call_find(int64_t nr, bool compat)
{
	static const struct call none = {
		.fd_arg = -1, .fd_to_arg = -1, .flags_arg = -1, .path = {-1, -1}};
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

	if (call->fd_arg < 0 || (call->flags_arg >= 0 && arg[call->flags_arg] & MAP_ANONYMOUS))
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

/* Reads the path of the directory that a relative path begins at. */
static ssize_t directory_read(const char *root, const struct sample *sample, int dir_arg,
			      char *path, size_t size)
{
	int fd = dir_arg < 0 ? AT_FDCWD : (int)(uint32_t)sample->call.arg[dir_arg];
	char name[32] = "cwd";

	if (fd != AT_FDCWD)
		snprintf(name, sizeof(name), "fd/%d", fd);
	return proc_link_read(root, sample->thread.pid, sample->thread.tid, name, path, size);
}

ssize_t call_path_read(const char *root, const struct sample *sample, bool compat, char *path,
		       size_t size)
{
	struct syscall_path at = syscall_path(sample->call.nr, compat);
	char given[PATH_MAX];
	ssize_t length = 0;
	uint64_t address;

	if (at.arg < 0)
		return -EINVAL;
	address = compat ? (uint32_t)sample->call.arg[at.arg] : (uint64_t)sample->call.arg[at.arg];
	length = user_text_read(root, sample->thread.pid, sample->thread.tid, address, given,
				sizeof(given));
	if (length <= 0)
		return length ? length : -ENOENT;
	if (*given != '/')
		length = directory_read(root, sample, at.dir_arg, path, size);
	else
		length = 0;
	if (length < 0)
		length = 0; /* the directory can't be read: the path stays relative */
	return snprintf(path + length, size - (size_t)length, "%s%s", length ? "/" : "", given) +
	       length;
}
