/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Needs of a column beyond what every sample has; a column row's `needs`. Facts that no chosen
 * column needs are neither read nor looked up.
 *
 * A need is a bit here, and a row: all lists of needs are made from these rows.
 */
#ifndef TSNAP_SAMPLE_NEEDS_H
#define TSNAP_SAMPLE_NEEDS_H

#include <stdint.h>

/* Bits 37 to 39 are free. Bits from 59 on are not needs: sample/filter/expression.h,
 * live/live_groups.c. */
#define SAMPLE_NEED(bit) (UINT64_C(1) << (bit))
#define NEED_USER SAMPLE_NEED(0)	    /* user, uid */
#define NEED_PPID SAMPLE_NEED(1)	    /* ppid */
#define NEED_CMDLINE SAMPLE_NEED(2)	    /* cmdline */
#define NEED_EXE SAMPLE_NEED(3)		    /* exe */
#define NEED_SYSCALL SAMPLE_NEED(4)	    /* syscall, syscall_nr, arg */
#define NEED_FILE SAMPLE_NEED(5)	    /* fd, filename */
#define NEED_CGROUP SAMPLE_NEED(6)	    /* cgroup */
#define NEED_WAKER SAMPLE_NEED(7)	    /* waker_tid */
#define NEED_WAKER_COMM SAMPLE_NEED(8)	    /* waker_comm */
#define NEED_TOTALS SAMPLE_NEED(9)	    /* cpu_us .. ivcsw */
#define NEED_COMMSUM SAMPLE_NEED(10)	    /* commsum */
#define NEED_FILENAMESUM SAMPLE_NEED(11)    /* filenamesum */
#define NEED_COMM SAMPLE_NEED(12)	    /* comm, also after a change of it */
#define NEED_STACK SAMPLE_NEED(13)	    /* stack */
#define NEED_STAT SAMPLE_NEED(14)	    /* proc_values of /proc/TID/stat */
#define NEED_STATUS SAMPLE_NEED(15)	    /* proc_values of /proc/TID/status */
#define NEED_IO SAMPLE_NEED(16)		    /* proc_values of /proc/TID/io */
#define NEED_WAKER_PID SAMPLE_NEED(17)	    /* waker_pid */
#define NEED_PID_NS SAMPLE_NEED(18)	    /* pid_ns, ns_pid, ns_tid */
#define NEED_CGROUP_NAMES SAMPLE_NEED(19)   /* container, container_runtime, pod, unit */
#define NEED_CONTAINER_NAME SAMPLE_NEED(20) /* container_name, pod_name */
#define NEED_SLEEP SAMPLE_NEED(21)	    /* sleep_us, also of threads that only slept */
#define NEED_PROCESSES SAMPLE_NEED(22)	    /* forks, execs, exits, in accounts */
#define NEED_CONNECTION SAMPLE_NEED(23)	    /* connection, remote */
#define NEED_FILETYPE SAMPLE_NEED(24)	    /* filetype */
#define NEED_WAITS SAMPLE_NEED(25)	    /* waits_on, waits_on_pid, inflight */
#define NEED_WCHAN SAMPLE_NEED(26)	    /* wchan */
#define NEED_USTACK SAMPLE_NEED(27)	    /* ustack, ufunc, ufuncs */
#define NEED_KSTACK SAMPLE_NEED(28)	    /* kstack, kfunc, kfuncs */
#define NEED_BLOCK SAMPLE_NEED(29)	    /* io_dev .. io_others */
#define NEED_WAIT_CLASS SAMPLE_NEED(30)	    /* why */
#define NEED_CALL_TIME SAMPLE_NEED(31)	    /* syscall_us */
#define NEED_WAKER_STACK SAMPLE_NEED(32)    /* waker_ustack, waker_kstack, waker_stack */
#define NEED_BLOCKER SAMPLE_NEED(33)	    /* blocker_tid ..; with NEED_CGROUP oncpu_cgroup */
#define NEED_CHAIN SAMPLE_NEED(34)	    /* chain .. root_syscall */
#define NEED_PATH SAMPLE_NEED(35)	    /* path_end .. path_of_tid, only with --critical-path */
#define NEED_SCRIPT SAMPLE_NEED(36)	    /* script */
#define NEED_WAITS_ONSUM SAMPLE_NEED(40)    /* waits_onsum */
#define NEED_RUNQ_WHY SAMPLE_NEED(41)	    /* runq_why */
#define NEED_UFILES SAMPLE_NEED(42)	    /* ufiles */

/* Properties of a need. */
enum needs_trait {
	/* a filter can have it before the registers of a thread are read */
	NEED_IS_EARLY = 1,
	/* results of lookups are kept for a while (live/resolve/lookup.h), but not after the thread
	 * is renamed, which is taken for the sign of an exec */
	NEED_IS_KEPT = 2,
	/* about a thread rather than one sample: the thread keeps it whatever it does, and it can
	 * be looked up at any time */
	NEED_IS_OF_THREAD = 4,
	/* a file of /proc/PID/task/TID with the row's name, whose words are proc_values */
	NEED_IS_PROC_FILE = 8,
};
#define OF_THREAD (NEED_IS_OF_THREAD | NEED_IS_EARLY | NEED_IS_KEPT)
#define OF_PROC_FILE (NEED_IS_PROC_FILE | NEED_IS_EARLY | NEED_IS_KEPT)

/* Rows of needs: the need, the needs that it implies, its traits, its cost (needs_table.h), its
 * name, and the source of its facts. In the order in which a filter evaluates them: the cheapest
 * first, and after the needs that it implies. */
/* clang-format off */
#define SAMPLE_NEEDS(ROW) \
	ROW(NEED_COMM, 0, OF_THREAD, COST_FREE, "name", \
	    "the record; a probe where a thread is renamed, a rare event") \
	ROW(NEED_WAKER, 0, 0, COST_FREE, "wakeup", \
	    "the record; wake-ups are seen for the states anyway") \
	ROW(NEED_TOTALS, 0, NEED_IS_EARLY, COST_FREE, "totals", \
	    "the record; added up at switches, seen anyway") \
	ROW(NEED_SLEEP, NEED_TOTALS, 0, COST_SAMPLED, "sleeps", \
	    "totals of all threads that sleep, once a report") \
	ROW(NEED_PROCESSES, NEED_COMM, 0, COST_EVENT, "processes", \
	    "forks, execs and exits, which reports count; rare events") \
	ROW(NEED_COMMSUM, NEED_COMM, OF_THREAD, COST_SAMPLED, "commsum", "comm, folded") \
	ROW(NEED_USER, 0, OF_THREAD, COST_SAMPLED, "user", \
	    "owner of /proc/PID/task/TID, and the user database") \
	ROW(NEED_CGROUP, 0, OF_THREAD, COST_SAMPLED, "cgroup", "/proc/PID/task/TID/cgroup") \
	ROW(NEED_CGROUP_NAMES, NEED_CGROUP, OF_THREAD, COST_SAMPLED, "cgroupnames", "cgroup, parsed") \
	ROW(NEED_CONTAINER_NAME, NEED_CGROUP, OF_THREAD, COST_SAMPLED, "containers", \
	    "cgroup, and files of the container's runtime and of Kubernetes, once a minute") \
	ROW(NEED_PID_NS, 0, OF_THREAD, COST_SAMPLED, "pidns", "/proc/PID/task/TID/ns/pid, and status") \
	ROW(NEED_PPID, 0, OF_THREAD, COST_SAMPLED, "parent", \
	    "/proc/PID/task/TID/stat, once per process") \
	ROW(NEED_EXE, 0, OF_THREAD, COST_SAMPLED, "exe", "/proc/PID/task/TID/exe, once per process") \
	ROW(NEED_CMDLINE, 0, OF_THREAD, COST_SAMPLED, "cmdline", \
	    "/proc/PID/task/TID/cmdline, once per process") \
	ROW(NEED_SCRIPT, NEED_CMDLINE, OF_THREAD, COST_SAMPLED, "script", "cmdline, parsed") \
	ROW(NEED_STAT, 0, OF_PROC_FILE, COST_SAMPLED, "stat", "/proc/PID/task/TID/stat") \
	ROW(NEED_STATUS, 0, OF_PROC_FILE, COST_SAMPLED, "status", "/proc/PID/task/TID/status") \
	ROW(NEED_IO, 0, OF_PROC_FILE, COST_SAMPLED, "io", "/proc/PID/task/TID/io") \
	ROW(NEED_WAKER_COMM, NEED_WAKER, NEED_IS_EARLY | NEED_IS_KEPT, COST_SAMPLED, "waker", \
	    "/proc/TID/comm of the waker") \
	ROW(NEED_WAKER_PID, NEED_WAKER, NEED_IS_EARLY, COST_SAMPLED, "wakerpid", \
	    "/proc/TID/status of the waker") \
	ROW(NEED_SYSCALL, 0, 0, COST_SAMPLED, "registers", \
	    "saved registers on the kernel stack; before 5.10 kept at every switch") \
	ROW(NEED_WAIT_CLASS, NEED_SYSCALL, NEED_IS_KEPT, COST_SAMPLED, "why", \
	    "registers; for some calls also what is waited for, once per wait") \
	ROW(NEED_FILE, NEED_SYSCALL, NEED_IS_KEPT, COST_SAMPLED, "file", \
	    "registers, and /proc/PID/task/TID/fd/FD") \
	ROW(NEED_FILENAMESUM, NEED_FILE, 0, COST_SAMPLED, "filenamesum", "filename, folded") \
	ROW(NEED_FILETYPE, NEED_FILE, 0, COST_SAMPLED, "filetype", "file, and stat(2) of it") \
	ROW(NEED_CONNECTION, NEED_FILE, 0, COST_SAMPLED, "sockets", \
	    "file, and the sockets of the network namespace (sock_diag)") \
	ROW(NEED_WAITS, NEED_FILE, 0, COST_SAMPLED, "waits", \
	    "file, /proc/PID/fdinfo, locks and descriptor sets in the thread's memory, other ends") \
	ROW(NEED_WAITS_ONSUM, NEED_WAITS, 0, COST_SAMPLED, "waitsonsum", "waits, folded") \
	ROW(NEED_WCHAN, 0, 0, COST_SAMPLED, "wchan", "/proc/TID/wchan") \
	ROW(NEED_RUNQ_WHY, NEED_COMM, 0, COST_SAMPLED, "runqwhy", \
	    "/proc/PID/task/TID/stat and cgroup of threads in RQ, cpu.stat of groups with a quota") \
	ROW(NEED_BLOCK, 0, NEED_IS_EARLY, COST_EVENT, "block", \
	    "requests to block devices, three programs each; their map, once a scan") \
	ROW(NEED_USTACK, 0, 0, COST_SAMPLED, "ustack", \
	    "saved registers or a perf sample, the thread's memory, and files with its code") \
	ROW(NEED_KSTACK, 0, 0, COST_SAMPLED, "kstack", "/proc/TID/stack, or a perf sample") \
	ROW(NEED_BLOCKER, NEED_COMM | NEED_WAITS, 0, COST_EVENT, "blocker", \
	    "waits; locks and threads of other ends, read anew for each scan; block and wakeup, " \
	    "where the host has them") \
	ROW(NEED_CHAIN, NEED_BLOCKER | NEED_WAIT_CLASS, 0, COST_SAMPLED, "chain", \
	    "blocker, of each thread that a chain leads to") \
	ROW(NEED_PATH, NEED_COMM | NEED_WAIT_CLASS, 0, COST_EVENT, "path", \
	    "a row for each wake-up that ends a wait which a scan has seen; block, where the " \
	    "host has it") \
	ROW(NEED_CALL_TIME, NEED_SYSCALL, 0, COST_EVENT, "calls", "a probe at each system call") \
	ROW(NEED_STACK, NEED_USTACK | NEED_KSTACK, NEED_IS_KEPT, COST_SAMPLED, "stack", \
	    "ustack and kstack, folded") \
	ROW(NEED_UFILES, NEED_USTACK, 0, COST_SAMPLED, "ufiles", "ustack, with the files' build-ids") \
	ROW(NEED_WAKER_STACK, NEED_WAKER | NEED_USTACK | NEED_KSTACK, NEED_IS_KEPT, COST_SAMPLED, "wakerstack", \
	    "user and kernel stack of the thread that was the last waker")

#define NEED_IF_(need, traits, trait) | ((traits) & (trait) ? (need) : 0)
#define NEED_IF_EARLY_(need, implies, traits, ...) NEED_IF_(need, traits, NEED_IS_EARLY)
#define NEED_IF_KEPT_(need, implies, traits, ...) NEED_IF_(need, traits, NEED_IS_KEPT)
#define NEED_IF_OF_THREAD_(need, implies, traits, ...) NEED_IF_(need, traits, NEED_IS_OF_THREAD)
#define NEED_IF_PROC_FILE_(need, implies, traits, ...) NEED_IF_(need, traits, NEED_IS_PROC_FILE)
/* clang-format on */

/* All needs with that trait. */
#define NEEDS_EARLY (UINT64_C(0) SAMPLE_NEEDS(NEED_IF_EARLY_))
#define NEEDS_KEPT (UINT64_C(0) SAMPLE_NEEDS(NEED_IF_KEPT_))
#define NEEDS_OF_THREADS (UINT64_C(0) SAMPLE_NEEDS(NEED_IF_OF_THREAD_))
#define NEEDS_PROC_VALUES (UINT64_C(0) SAMPLE_NEEDS(NEED_IF_PROC_FILE_))
/* Needs that lookups can serve of a thread at any time; the name is in the record instead. */
#define NEEDS_ANYTIME (NEEDS_OF_THREADS & ~NEED_COMM)

#define NEEDS_CHAINS (NEED_BLOCKER | NEED_CHAIN)
#define NEEDS_STACKS (NEED_USTACK | NEED_KSTACK | NEED_STACK | NEED_WAKER_STACK | NEED_UFILES)

/* The needs with all needs that they imply. */
uint64_t sample_needs_close(uint64_t needs);

#endif
