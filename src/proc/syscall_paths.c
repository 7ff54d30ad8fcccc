/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc/syscall_paths.h"

#include <stddef.h>

/* System calls of all architectures: syscalls(2). Of two paths, the one that exists already; of
 * mount, the mount point. */
/* clang-format off */
const struct syscall_path_row syscall_paths[] = {
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
