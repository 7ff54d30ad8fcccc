/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sandbox/call_table.h"
#include "sandbox/capabilities.h"

#include <asm/ioctls.h>
#include <asm/termbits.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/sem.h>
#include <sys/socket.h>

#define ANY UINT32_MAX
#define IOCTL_KIND 0xff00 /* _IOC_TYPE() */
#define NSFS_KIND 0xb700  /* include/uapi/linux/nsfs.h */
#define ASKS (SANDBOX_SAMPLES | SANDBOX_NAMES)
#define NEW_NAMESPACES                                                                 \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | \
	 CLONE_NEWPID | CLONE_NEWNET)

/* clang-format off */
const struct call_row call_rows[] = {
	{"read write readv writev pread64 pwrite64 preadv pwritev lseek _llseek close close_range dup "
	 "dup2 dup3 fcntl fcntl64 flock fsync fdatasync fallocate ftruncate ftruncate64 fadvise64 "
	 "fadvise64_64 readahead copy_file_range sendfile sendfile64 sync_file_range pipe pipe2 "
	 "memfd_create umask", 0, {{0}}},
	{"open openat openat2 stat fstat lstat stat64 fstat64 lstat64 newfstatat fstatat64 statx statfs "
	 "fstatfs statfs64 fstatfs64 access faccessat faccessat2 readlink readlinkat getdents getdents64 "
	 "getxattr lgetxattr fgetxattr getcwd chdir fchdir", 0, {{0}}},
	/* outputs, and the directory that a larger map is compiled in */
	{"unlink unlinkat rename renameat renameat2 mkdir mkdirat rmdir fchmod fchown fremovexattr "
	 "utimensat",
	 SANDBOX_SAMPLES | SANDBOX_WRITES, {{0}}},
	{"mmap mmap2 munmap mprotect mremap madvise brk mlock mlock2 munlock membarrier", 0, {{0}}},
	{"exit exit_group set_tid_address set_robust_list get_robust_list rseq futex futex_waitv gettid getpid "
	 "getppid getpgrp getpgid getsid tgkill", 0, {{0}}},
	{"wait4 waitid kill tkill fork vfork", SANDBOX_SAMPLES, {{0}}},
	{"kill", SANDBOX_REPLAYS, {{ANY, 0, 0}, {ANY, 1, SIGTSTP}}}, /* Ctrl-Z of --top */
	{"clone", SANDBOX_SAMPLES, {{NEW_NAMESPACES, 0, 0}}},
	{"clone", SANDBOX_REPLAYS, {{CLONE_THREAD, 0, CLONE_THREAD}}},
	{"sched_yield sched_getaffinity sched_setaffinity sched_getparam sched_setparam "
	 "sched_getscheduler sched_setscheduler sched_getattr sched_get_priority_max "
	 "sched_get_priority_min getpriority setpriority prlimit64 getrlimit ugetrlimit setrlimit "
	 "getrusage prctl arch_prctl capget", 0, {{0}}},
	{"clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday time times timerfd_create "
	 "timerfd_settime timerfd_gettime alarm setitimer getitimer", 0, {{0}}},
	{"rt_sigaction rt_sigprocmask rt_sigreturn rt_sigtimedwait rt_sigpending rt_sigsuspend "
	 "sigaltstack signalfd4 restart_syscall pause", 0, {{0}}},
	{"poll ppoll select _newselect pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait "
	 "epoll_pwait epoll_pwait2 eventfd2 inotify_init1 inotify_add_watch inotify_rm_watch", 0, {{0}}},
	/* a parser that is begun later bounds itself: both calls can only take away */
	{"seccomp capset", SANDBOX_SAMPLES, {{0}}},
	{"getuid geteuid getgid getegid getresuid getresgid getgroups uname sysinfo getcpu getrandom",
	 0, {{0}}},
	/* sock_diag, and the name service (nscd, SSSD, LDAP) */
	{"socket", ASKS, {{ANY, 0, AF_UNIX}}},
	{"socket", ASKS, {{ANY, 0, AF_NETLINK}}},
	{"socket", ASKS, {{ANY, 0, AF_INET}}},
	{"socket", ASKS, {{ANY, 0, AF_INET6}}},
	{"socketpair connect bind getsockname getpeername getsockopt setsockopt sendto sendmsg sendmmsg "
	 "recvfrom recvmsg recvmmsg shutdown", ASKS, {{0}}},
	/* terminals, but not TIOCSTI and TIOCLINUX: what they put in, the caller's shell would read */
	{"ioctl", 0, {{ANY, 1, TCGETS}}},	{"ioctl", 0, {{ANY, 1, TCSETS}}},
	{"ioctl", 0, {{ANY, 1, TCSETSW}}},	{"ioctl", 0, {{ANY, 1, TCSETSF}}},
	{"ioctl", 0, {{ANY, 1, TCGETS2}}},	{"ioctl", 0, {{ANY, 1, TCSETS2}}},
	{"ioctl", 0, {{ANY, 1, TCSETSW2}}},	{"ioctl", 0, {{ANY, 1, TCSETSF2}}},
	{"ioctl", 0, {{ANY, 1, TCFLSH}}},	{"ioctl", 0, {{ANY, 1, TCXONC}}},
	{"ioctl", 0, {{ANY, 1, TCSBRK}}},	{"ioctl", 0, {{ANY, 1, TIOCGWINSZ}}},
	{"ioctl", 0, {{ANY, 1, TIOCGPGRP}}},	{"ioctl", 0, {{ANY, 1, FIONREAD}}},
	{"ioctl", 0, {{ANY, 1, FIONBIO}}},	{"ioctl", 0, {{ANY, 1, FIOCLEX}}},
	{"ioctl", SANDBOX_SAMPLES, {{IOCTL_KIND, 1, NSFS_KIND}}},
	{"ioctl", SANDBOX_SAMPLES, {{IOCTL_KIND, 1, PERF_EVENT_IOC_ENABLE & IOCTL_KIND}}},
	{"bpf perf_event_open process_vm_readv kcmp pidfd_open", SANDBOX_SAMPLES, {{0}}},
	{"pidfd_getfd cachestat", SANDBOX_CACHE, {{0}}},
	{"semctl", SANDBOX_SAMPLES, {{ANY, 2, GETPID}}},
	{"pidfd_send_signal", SANDBOX_SAMPLES, {{ANY, 1, 0}}}, /* tests whether it lives */
	{"setns", SANDBOX_NAMESPACES, {{ANY, 1, CLONE_NEWNET}}},
	{"setresuid", SANDBOX_IDS, {{ANY, 0, UINT32_MAX}, {ANY, 2, UINT32_MAX}}},
	{"read pread64 write recvmsg sendmsg close dup fstat fstat64 lseek _llseek mmap mmap2 munmap mprotect "
	 "mremap madvise brk futex exit exit_group clock_gettime rt_sigaction rt_sigprocmask rt_sigreturn "
	 "sigaltstack getrandom getpid gettid sysinfo", SANDBOX_PARSES, {{0}}},
	{"newfstatat fstatat64", SANDBOX_PARSES, {{AT_EMPTY_PATH, 3, AT_EMPTY_PATH}}}, /* fstat(3) */
	{"getrlimit ugetrlimit setrlimit", SANDBOX_PARSES, {{0}}},
	{"prlimit64", SANDBOX_PARSES, {{ANY, 0, 0}}}, /* limits of this process only */
};
/* clang-format on */
const size_t call_row_count = sizeof(call_rows) / sizeof(call_rows[0]);

int call_number(const char *name)
{
	static const struct {
		const char *name;
		int number;
	} rows[] = {
		{"pidfd_send_signal", 424}, {"pidfd_open", 434},  {"clone3", 435},
		{"close_range", 436},	    {"openat2", 437},	  {"faccessat2", 439},
		{"epoll_pwait2", 441},	    {"futex_waitv", 449}, {"pidfd_getfd", 438},
		{"cachestat", 451},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (!strcmp(rows[i].name, name))
			return rows[i].number;
	return -1;
}
