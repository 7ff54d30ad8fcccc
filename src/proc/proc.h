/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Reads files and links of a thread in /proc. Each function takes the root of a proc tree ("/proc"
 * or a fixture). A thread that is gone gives -ENOENT or -ESRCH; text fields are returned unchanged,
 * even of hostile threads.
 *
 * pid and tid select ROOT/PID/task/TID; if pid is not known it is 0, and ROOT/TID is opened. Some
 * files are in ROOT/PID alone, not in task/TID: timerslack_ns, coredump_filter, autogroup
 * (tgid_base_stuff in fs/proc/base.c).
 */
#ifndef TSNAP_PROC_PROC_H
#define TSNAP_PROC_PROC_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct text;

#define PROC_COMM_SIZE 64 /* kernel workers show a longer name in stat than comm's 16 bytes */

/* Fields of /proc/TID/stat, proc(5). */
struct proc_stat {
	int64_t tid, ppid;
	bool reaped; /* the thread was waited for: ppid is 0, without a meaning (fs/proc/array.c) */
	char comm[PROC_COMM_SIZE];
	char state;	/* R S D T t Z X I P ... */
	uint32_t flags; /* PF_* of include/linux/sched.h; PF_KTHREAD is 0x200000 since 2.6.27 */
	uint64_t start_ticks; /* start by the boot time clock, in 1/sysconf(_SC_CLK_TCK) s */
	int64_t cpu;	      /* CPU last run on */
	int64_t policy;	      /* SCHED_* */
	uint64_t user_ticks, system_ticks;
	uint64_t stack_start; /* user stack pointer where the program began; 0: refused */
	uint64_t sp;	      /* user stack pointer at its last system call; 0 since 4.11 */
};

/* Reads stat. 0 or -errno. If pid is 0, the ticks are those of the whole process. */
int proc_stat_read(const char *root, int64_t pid, int64_t tid, struct proc_stat *stat);
/* Parses the line of stat. Pure. 0 or -EINVAL. */
int proc_stat_parse(const char *line, struct proc_stat *stat);

/* Fields of /proc/TID/syscall: the system call that a thread which is not running sleeps in. Not to
 * be read of kernel threads: the kernel shows call 0 with arguments 0, which is not read(2). */
struct proc_syscall {
	bool running; /* the file says "running": nothing else is known */
	int64_t nr;   /* -1: not in a system call; the arguments are 0 then */
	uint64_t arg[6];
	uint64_t sp, pc;
};
int proc_syscall_read(const char *root, int64_t pid, int64_t tid, struct proc_syscall *call);
int proc_syscall_parse(const char *line, struct proc_syscall *call);

/* Fields of /proc/TID/schedstat (CONFIG_SCHED_INFO). Time on a CPU is added at the clock's ticks
 * and when the thread leaves it; the wait for one, and the arrival, when the thread comes there. */
struct proc_schedstat {
	uint64_t cpu_ns;   /* time on a CPU */
	uint64_t runq_ns;  /* time runnable and waiting for one */
	uint64_t arrivals; /* how often it came on a CPU */
};
int proc_schedstat_read(const char *root, int64_t pid, int64_t tid, struct proc_schedstat *sums);
int proc_schedstat_parse(const char *line, struct proc_schedstat *sums);

/* Switches of a thread, from /proc/TID/status. 0 or -errno. */
int proc_switches_read(const char *root, int64_t pid, int64_t tid, uint64_t *voluntary,
		       uint64_t *involuntary);
int proc_switches_parse(const char *status, uint64_t *voluntary, uint64_t *involuntary);

/* Effective uid and thread group from /proc/TID/status. 0 or -errno. */
int proc_ids_read(const char *root, int64_t tid, int64_t *uid, int64_t *tgid);
int proc_ids_parse(const char *status, int64_t *uid, int64_t *tgid);

/* Ids of a thread in its own pid namespace, the innermost, from /proc/TID/status (4.1). 0 or
 * -errno. */
int proc_namespace_ids_read(const char *root, int64_t pid, int64_t tid, int64_t *namespace_pid,
			    int64_t *namespace_tid);
int proc_namespace_ids_parse(const char *status, int64_t *namespace_pid, int64_t *namespace_tid);

/* Pid of this process in that /proc: getpid(), unless /proc is of an outer pid namespace. */
int64_t proc_own_pid(const char *root);

/* Effective uid alone, from the owner of the thread's directory: ten times cheaper than status. The
 * kernel keeps this owner at the effective uid, dumpable or not (task_dump_owner() of
 * fs/proc/base.c). 0 or -errno. */
int proc_owner_read(const char *root, int64_t pid, int64_t tid, int64_t *uid);

/* Opens the thread's file `name` for reading. Returns a descriptor, which the caller closes, or
 * -errno. */
int proc_file_open(const char *root, int64_t pid, int64_t tid, const char *name);
/* The same as a stream, which the caller closes; NULL: it can't be opened. */
FILE *proc_file_stream(const char *root, int64_t pid, int64_t tid, const char *name);
/* Reads the thread's file `name` ("comm") into bytes with one read(2), NUL-terminated and cut at
 * size - 1. Length or -errno. */
ssize_t proc_file_read(const char *root, int64_t pid, int64_t tid, const char *name, char *bytes,
		       size_t size);
/* Reads the thread's link `name` ("exe", "fd/3") with one readlink(2), NUL-terminated. Length or
 * -errno; -ENAMETOOLONG if it does not fit. */
ssize_t proc_link_read(const char *root, int64_t pid, int64_t tid, const char *name, char *bytes,
		       size_t size);

/* Reads /proc/PID/fdinfo/FD, proc(5): 3000 descriptors of an epoll set, 12 000 polls of a ring, or
 * 3600 locks. Returns its text, valid until the next call, which the caller may change; "" if it
 * can't be read, or is an epoll set that is locked. *cut, unless NULL: the text is truncated. */
char *proc_fdinfo_read(const char *root, int64_t pid, int64_t tid, int fd, bool *cut);
/* True if the thread's descriptor fd has that link. */
bool proc_fd_is(const char *root, int64_t pid, int64_t tid, int fd, const char *link);

/* Returns the number of threads of a process, without listing them; 0: it is gone. */
int64_t proc_thread_count(const char *root, int64_t pid);
/* Opens the directory `name` ("fd", "task") of a process, which the caller closes; NULL: it is
 * gone. */
DIR *proc_dir_open(const char *root, int64_t pid, const char *name);
/* The next number among the names of a directory; -1: there are no more, or dir is NULL. */
int64_t proc_dir_next(DIR *dir);

#define PROC_CMDLINE_BYTES 4097
/* Reads the command line, with spaces between its words, cut if it is longer. Its length; 0: none.
 */
ssize_t proc_cmdline_read(const char *root, int64_t pid, int64_t tid,
			  char cmdline[PROC_CMDLINE_BYTES]);

/* Calls visit for each thread of the host (tgid, tid); a non-zero result ends the walk and is
 * returned. Threads may come and go meanwhile. 0, or -errno if root can't be read. */
int proc_threads_walk(const char *root, int (*visit)(void *to, int64_t pid, int64_t tid), void *to);

/* Calls visit for each child process that the thread has made or adopted, oldest first; false from
 * visit ends the walk. None if the kernel does not list them (CONFIG_PROC_CHILDREN). */
void proc_children_walk(const char *root, int64_t pid, int64_t tid,
			bool (*visit)(void *to, int64_t child), void *to);

/* Finds processes by `text`: a comma-separated list of ids and of names, with which the
 * process is compared as process_name_matches() does: its first thread's name, program and command
 * line. Appends the id of each to *pids (malloced, *count), once, but never that of
 * this process itself. Adds to missing, unless it is NULL, the parts without a process, separated
 * by commas. 0, or -errno if root can't be read. */
int proc_pids_find(const char *root, const char *text, int64_t **pids, size_t *count,
		   struct text *missing);

#endif
