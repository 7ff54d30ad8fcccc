/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/syscall_fds.h"

#include <stddef.h>

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

const struct syscall_fd syscall_fds_to[] = {
	{"sendfile", 0}, {"sendfile64", 0}, {"splice", 2}, {"tee", 1}, {"copy_file_range", 2},
	{NULL, -1},
};
/* clang-format on */
