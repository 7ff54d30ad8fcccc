/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads what /proc has of a thread. Each function takes the root of a proc tree ("/proc" or a
 * fixture). A thread that is gone gives -ENOENT or -ESRCH; text fields of hostile threads are taken
 * as they are.
 *
 * pid and tid name ROOT/PID/task/TID; where pid is not known it is 0, and ROOT/TID is opened. Some
 * files are in ROOT/PID alone, not in task/TID: timerslack_ns, coredump_filter, autogroup
 * (tgid_base_stuff in fs/proc/base.c).
 */
#ifndef TSNAP_PROC_PROC_H
#define TSNAP_PROC_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct text;

#define PROC_COMM_SIZE 64 /* kernel workers show a longer name in stat than comm's 16 bytes */

/* From /proc/TID/stat, proc(5). */
struct proc_stat {
	int64_t tid, ppid;
	bool reaped; /* it was waited for: ppid is 0, without a meaning (fs/proc/array.c) */
	char comm[PROC_COMM_SIZE];
	char state;	/* R S D T t Z X I P ... */
	uint32_t flags; /* PF_* of include/linux/sched.h; PF_KTHREAD is 0x200000 since 2.6.27 */
	uint64_t start_ticks; /* since boot (boot time clock), in 1/sysconf(_SC_CLK_TCK) s */
	int64_t cpu;	      /* CPU last run on */
	uint64_t user_ticks, system_ticks;
};

/* 0 or -errno. Without pid the ticks are those of the whole process. */
int proc_stat_read(const char *root, int64_t pid, int64_t tid, struct proc_stat *stat);
/* The pure part. 0 or -EINVAL. */
int proc_stat_parse(const char *line, struct proc_stat *stat);

/* From /proc/TID/syscall: what a thread that is not running sleeps in. Of a kernel thread the
 * kernel shows call 0 with arguments 0, which is not read(2): do not ask for one. */
struct proc_syscall {
	bool running; /* "running": nothing else is known */
	int64_t nr;   /* -1: not in a system call; the arguments are 0 then */
	uint64_t arg[6];
	uint64_t sp, pc;
};
int proc_syscall_read(const char *root, int64_t pid, int64_t tid, struct proc_syscall *call);
int proc_syscall_parse(const char *line, struct proc_syscall *call);

/* Effective uid and thread group from /proc/TID/status. 0 or -errno. */
int proc_ids_read(const char *root, int64_t tid, int64_t *uid, int64_t *tgid);
int proc_ids_parse(const char *status, int64_t *uid, int64_t *tgid);

/* Ids of a thread in the pid namespace that it is in itself, the innermost, from
 * /proc/TID/status (4.1): 0 or -errno. */
int proc_namespace_ids_read(const char *root, int64_t pid, int64_t tid, int64_t *namespace_pid,
			    int64_t *namespace_tid);
int proc_namespace_ids_parse(const char *status, int64_t *namespace_pid, int64_t *namespace_tid);

/* This process as that /proc shows it: getpid(), unless /proc is of an outer pid namespace. */
int64_t proc_own_pid(const char *root);

/* Effective uid alone, as the owner of the thread's directory: ten times cheaper than status. The
 * kernel keeps this owner at the effective uid, dumpable or not (task_dump_owner() of
 * fs/proc/base.c). 0 or -errno. */
int proc_owner_read(const char *root, int64_t pid, int64_t tid, int64_t *uid);

/* The thread's file `name`, opened for reading: a descriptor to close, or -errno. */
int proc_file_open(const char *root, int64_t pid, int64_t tid, const char *name);
/* One read of the thread's file `name` ("comm") into bytes, NUL-terminated and cut at size - 1.
 * Length or -errno. */
ssize_t proc_file_read(const char *root, int64_t pid, int64_t tid, const char *name, char *bytes,
		       size_t size);
/* One readlink(2) of the thread's link `name` ("exe", "fd/3"), NUL-terminated. Length or -errno;
 * -ENAMETOOLONG where it does not fit. */
ssize_t proc_link_read(const char *root, int64_t pid, int64_t tid, const char *name, char *bytes,
		       size_t size);

/* Calls visit for each thread of the host (tgid, tid); a visit that returns non-zero ends the walk,
 * and that is returned. Threads may come and go meanwhile. 0 or -errno when root can't be read. */
int proc_threads_walk(const char *root, int (*visit)(void *to, int64_t pid, int64_t tid), void *to);

/* The processes that `text` means: a list, with commas between, of ids and of shell patterns
 * (fnmatch; without * ? [ one matches anywhere) over comm, and over the base name of the first word
 * of the command line. Appends the id of each to *pids (malloced, *count), once, but never that of
 * this process itself. missing, unless it is NULL, gets the parts that mean no process, with commas
 * between. 0, or -errno where root can't be read. */
int proc_pids_find(const char *root, const char *text, int64_t **pids, size_t *count,
		   struct text *missing);

#endif
