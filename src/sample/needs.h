/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Needs of a column beyond what every sample has; a column row's `needs`. Facts that no chosen
 * column needs are neither read nor looked up.
 *
 * A need is a bit here, and a row: all lists of needs are made from these rows.
 */
#ifndef TSNAP_SAMPLE_NEEDS_H
#define TSNAP_SAMPLE_NEEDS_H

#include <stdint.h>

/* Bits from 59 on are not needs: sample/filter/expression.h,
 * live/live_options.c. */
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
#define NEED_WORKQUEUE SAMPLE_NEED(37)	    /* workqueue */
#define NEED_APP SAMPLE_NEED(38)	    /* app_wait .. client_app */
#define NEED_QUERY SAMPLE_NEED(39)	    /* query */
#define NEED_WAITS_ONSUM SAMPLE_NEED(40)    /* waits_onsum */
#define NEED_RUNQ_WHY SAMPLE_NEED(41)	    /* runq_why */
#define NEED_UFILES SAMPLE_NEED(42)	    /* ufiles */
#define NEED_PARENT_COMM SAMPLE_NEED(48)    /* parent_comm */
#define NEED_NEIGHBOUR SAMPLE_NEED(50)	    /* neighbour */
#define NEED_SERVICE SAMPLE_NEED(43)	    /* service, service_instance */
#define NEED_TRACE SAMPLE_NEED(44)	    /* trace_id, span_id */
#define NEED_CONTEXT SAMPLE_NEED(45)	    /* context */
#define NEED_VARIABLES SAMPLE_NEED(46)	    /* those of --context */
#define NEED_QUERYSUM SAMPLE_NEED(47)	    /* querysum */
#define NEED_NET SAMPLE_NEED(51)	    /* net .. sndbuf_pct */
#define NEED_REQUEST SAMPLE_NEED(49)	    /* request, app_script, app_function */
#define NEED_CACHE SAMPLE_NEED(52)	    /* file_bytes .. evicted_bytes */
#define NEED_INTERRUPTS SAMPLE_NEED(53)	    /* hardirq_s, softirq_s, steal_s, in accounts of CPUs */
#define NEED_SERVES SAMPLE_NEED(54)	    /* serves */
#define NEED_IRQ SAMPLE_NEED(55)	    /* irq */
#define NEED_REFAULTS SAMPLE_NEED(56)	    /* refault_bps */
#define NEED_HELD SAMPLE_NEED(57)	    /* those of --context between two probes */

/* What fills a need's facts, in the order in which a sample gets them. */
enum need_source {
	FROM_RECORD, /* at no cost */
	FROM_TOTALS,
	FROM_CAPTURE, /* maps that each scan copies */
	/* lookups: stages of live/resolve/lookup.c */
	FROM_WAKER,
	FROM_PROCESS,
	FROM_USER,
	FROM_CGROUP,
	FROM_NAMESPACE,
	FROM_VALUES, /* a file of /proc/PID/task/TID with the row's name, whose words are
			proc_values */
	FROM_CONTAINER,
	FROM_WORKQUEUE,
	FROM_CALL,
	FROM_CLASS,
	FROM_FILE,
	FROM_CACHE,
	FROM_WAIT,
	FROM_APP,
	/* facts that are known when a batch of samples has been gathered */
	FROM_RUNQ,
	FROM_STACKS,
	FROM_CHAINS,
	FROM_WAKEUPS, /* later scans */
	FROM_OTHERS,  /* facts that it implies: sample_derive() */
};

/* Properties of a need. */
enum need_trait {
	/* a filter can have it before the registers of a thread are read */
	IS_EARLY = 1,
	/* results of lookups are kept for a while (live/resolve/lookup.h), but not after the thread
	 * is renamed, which is taken for the sign of an exec */
	IS_KEPT = 2,
	/* about a thread rather than one sample: the thread keeps it whatever it does, and it can
	 * be looked up at any time */
	IS_OF_THREAD = 4,
	/* --top keeps it of every sample, whatever it shows */
	IS_SHOWN = 8,
	/* about a call: single events of a call have it, too */
	IS_OF_EVENT = 16,
};
#define OF_THREAD (IS_OF_THREAD | IS_EARLY | IS_KEPT)

/* What the kernel's programs must keep or see for a need (live/live_options.c). */
enum need_probe {
	KEEPS_REGISTERS = 1, /* saved ones, at a switch, or read on request */
	KEEPS_TOTALS = 2,
	KEEPS_WAKER = 4,
	KEEPS_STACKS = 8,
	KEEPS_PROGRAM = 16, /* the files of another program lie elsewhere */
	KEEPS_WAKES = 32,
	SEES_REQUESTS = 64, /* to block devices */
	SEES_CALLS = 128,
	SEES_RENAMES = 256,
	SEES_IRQS = 512,
	LOOKS_AT_MEMORY = 1024, /* of threads on a CPU */
	KEEPS_EXECS = 2048,	/* another program of a thread */
};

/* Rows of needs: the need, the needs that it implies, what fills it, its traits, its probes, its
 * cost (needs_table.h), its name, and the source of its facts. In the order in which a filter
 * evaluates them: the cheapest first, and after the needs that it implies. */
/* clang-format off */
#define SAMPLE_NEEDS(ROW) \
	ROW(NEED_COMM, 0, FROM_RECORD, OF_THREAD | IS_SHOWN, SEES_RENAMES, COST_FREE, "name", \
	    "the record; a probe where a thread is renamed, a rare event") \
	ROW(NEED_WAKER, 0, FROM_RECORD, IS_SHOWN, KEEPS_WAKER, COST_FREE, "wakeup", \
	    "the record; wake-ups are seen for the states anyway") \
	ROW(NEED_HELD, 0, FROM_RECORD, IS_EARLY, KEEPS_EXECS, COST_EVENT, "contexts", \
	    "programs at the two probes that --context names; their map, with the record") \
	ROW(NEED_TOTALS, 0, FROM_TOTALS, IS_EARLY | IS_SHOWN, KEEPS_TOTALS, COST_FREE, "totals", \
	    "the record; added up at switches, seen anyway") \
	ROW(NEED_SLEEP, NEED_TOTALS, FROM_TOTALS, 0, KEEPS_TOTALS, COST_SAMPLED, "sleeps", \
	    "totals of all threads that sleep, once a report") \
	ROW(NEED_PROCESSES, NEED_COMM, FROM_TOTALS, IS_SHOWN, KEEPS_TOTALS, COST_EVENT, "processes", \
	    "forks, execs and exits, which reports count; rare events") \
	ROW(NEED_INTERRUPTS, NEED_PROCESSES, FROM_TOTALS, IS_EARLY, KEEPS_TOTALS, COST_SAMPLED, "interrupts", \
	    "/proc/stat, once a report") \
	ROW(NEED_COMMSUM, NEED_COMM, FROM_OTHERS, OF_THREAD | IS_SHOWN, 0, COST_SAMPLED, "commsum", \
	    "comm, folded") \
	ROW(NEED_USER, 0, FROM_USER, OF_THREAD | IS_SHOWN, 0, COST_SAMPLED, "user", \
	    "owner of /proc/PID/task/TID, and the user database") \
	ROW(NEED_CGROUP, 0, FROM_CGROUP, OF_THREAD | IS_SHOWN, 0, COST_SAMPLED, "cgroup", \
	    "/proc/PID/task/TID/cgroup") \
	ROW(NEED_CGROUP_NAMES, NEED_CGROUP, FROM_OTHERS, OF_THREAD | IS_SHOWN, 0, COST_SAMPLED, "cgroupnames", \
	    "cgroup, parsed") \
	ROW(NEED_CONTAINER_NAME, NEED_CGROUP, FROM_CONTAINER, OF_THREAD, 0, COST_SAMPLED, "containers", \
	    "cgroup, and files of the container's runtime and of Kubernetes, once a minute") \
	ROW(NEED_PID_NS, 0, FROM_NAMESPACE, OF_THREAD, 0, COST_SAMPLED, "pidns", \
	    "/proc/PID/task/TID/ns/pid, and status") \
	ROW(NEED_PPID, 0, FROM_PROCESS, OF_THREAD | IS_SHOWN, 0, COST_SAMPLED, "parent", \
	    "/proc/PID/task/TID/stat, once per process") \
	ROW(NEED_PARENT_COMM, NEED_PPID, FROM_PROCESS, OF_THREAD | IS_SHOWN, 0, COST_SAMPLED, "parentname", \
	    "/proc/PPID/comm, once per process") \
	ROW(NEED_EXE, 0, FROM_PROCESS, OF_THREAD | IS_SHOWN, 0, COST_SAMPLED, "exe", \
	    "/proc/PID/task/TID/exe, once per process") \
	ROW(NEED_CMDLINE, 0, FROM_PROCESS, OF_THREAD, 0, COST_SAMPLED, "cmdline", \
	    "/proc/PID/task/TID/cmdline, once per process") \
	ROW(NEED_SCRIPT, NEED_CMDLINE, FROM_OTHERS, OF_THREAD, 0, COST_SAMPLED, "script", \
	    "cmdline, parsed") \
	ROW(NEED_STAT, 0, FROM_VALUES, IS_EARLY | IS_KEPT, 0, COST_SAMPLED, "stat", \
	    "/proc/PID/task/TID/stat") \
	ROW(NEED_STATUS, 0, FROM_VALUES, IS_EARLY | IS_KEPT, 0, COST_SAMPLED, "status", \
	    "/proc/PID/task/TID/status") \
	ROW(NEED_IO, 0, FROM_VALUES, IS_EARLY | IS_KEPT, 0, COST_SAMPLED, "io", \
	    "/proc/PID/task/TID/io") \
	ROW(NEED_WAKER_COMM, NEED_WAKER, FROM_WAKER, IS_EARLY | IS_KEPT | IS_SHOWN, KEEPS_WAKER, COST_SAMPLED, "waker", \
	    "/proc/TID/comm of the waker") \
	ROW(NEED_WAKER_PID, NEED_WAKER, FROM_WAKER, IS_EARLY, KEEPS_WAKER, COST_SAMPLED, "wakerpid", \
	    "/proc/TID/status of the waker") \
	ROW(NEED_WORKQUEUE, NEED_COMM, FROM_WORKQUEUE, IS_EARLY | IS_SHOWN, 0, COST_SAMPLED, "workqueue", \
	    "/proc/TID/comm of kernel threads named kworker/*") \
	ROW(NEED_SYSCALL, 0, FROM_CALL, IS_SHOWN | IS_OF_EVENT, KEEPS_REGISTERS, COST_SAMPLED, "registers", \
	    "saved registers on the kernel stack; before 5.10 kept at every switch") \
	ROW(NEED_WAIT_CLASS, NEED_SYSCALL, FROM_CLASS, IS_KEPT | IS_SHOWN, 0, COST_SAMPLED, "why", \
	    "registers; for some calls also what is waited for, once per wait") \
	ROW(NEED_FILE, NEED_SYSCALL, FROM_FILE, IS_KEPT | IS_SHOWN | IS_OF_EVENT, 0, COST_SAMPLED, "file", \
	    "registers, and /proc/PID/task/TID/fd/FD") \
	ROW(NEED_CACHE, NEED_FILE, FROM_CACHE, 0, 0, COST_SAMPLED, "pagecache", \
	    "file, and cachestat(2) of its descriptor, once a second") \
	ROW(NEED_REFAULTS, NEED_FILE, FROM_CACHE, 0, 0, COST_SAMPLED, "refaults", \
	    "/proc/TID/cgroup of threads in D, and memory.stat of these groups, once a second") \
	ROW(NEED_FILENAMESUM, NEED_FILE, FROM_OTHERS, IS_SHOWN | IS_OF_EVENT, 0, COST_SAMPLED, "filenamesum", \
	    "filename, folded") \
	ROW(NEED_FILETYPE, NEED_FILE, FROM_WAIT, IS_SHOWN | IS_OF_EVENT, 0, COST_SAMPLED, "filetype", \
	    "file, and stat(2) of it") \
	ROW(NEED_CONNECTION, NEED_FILE, FROM_WAIT, IS_SHOWN | IS_OF_EVENT, 0, COST_SAMPLED, "sockets", \
	    "file, and the sockets of the network namespace (sock_diag)") \
	ROW(NEED_WAITS, NEED_FILE, FROM_WAIT, IS_SHOWN, 0, COST_SAMPLED, "waits", \
	    "file, /proc/PID/fdinfo, locks and descriptor sets in the thread's memory, other ends") \
	ROW(NEED_WAITS_ONSUM, NEED_WAITS, FROM_OTHERS, 0, 0, COST_SAMPLED, "waitsonsum", \
	    "waits, folded") \
	ROW(NEED_NET, NEED_FILE, FROM_WAIT, 0, 0, COST_SAMPLED, "net", \
	    "file, sets in the thread's memory, and tcp_info of the connection (sock_diag), once a second") \
	ROW(NEED_SERVES, NEED_FILE, FROM_WAIT, 0, 0, COST_SAMPLED, "serves", \
	    "sockets that threads of servers were seen to wait for, and tcp_info of those (sock_diag), once a wait") \
	ROW(NEED_WCHAN, 0, FROM_WAIT, 0, 0, COST_SAMPLED, "wchan", \
	    "/proc/TID/wchan") \
	ROW(NEED_APP, 0, FROM_APP, IS_SHOWN, 0, COST_SAMPLED, "app", \
	    "memory of a program that says what it does (PostgreSQL, MariaDB); once a wait") \
	ROW(NEED_QUERY, 0, FROM_APP, 0, 0, COST_SAMPLED, "query", \
	    "memory of such a program; read only if query is named") \
	ROW(NEED_QUERYSUM, NEED_QUERY, FROM_OTHERS, 0, 0, COST_SAMPLED, "querysum", \
	    "query, folded") \
	ROW(NEED_REQUEST, 0, FROM_APP, 0, 0, COST_SAMPLED, "request", \
	    "memory of PHP's workers") \
	ROW(NEED_SERVICE, 0, FROM_APP, 0, 0, COST_SAMPLED, "service", \
	    "memory of a process that publishes OpenTelemetry's process context") \
	ROW(NEED_TRACE, 0, FROM_APP, 0, LOOKS_AT_MEMORY, COST_SAMPLED, "trace", \
	    "the same, and thread-local storage by the thread's pointer register; once a wait") \
	ROW(NEED_CONTEXT, 0, FROM_APP, 0, LOOKS_AT_MEMORY, COST_SAMPLED, "context", \
	    "the same; read only if context is named") \
	ROW(NEED_VARIABLES, 0, FROM_APP, 0, 0, COST_SAMPLED, "variables", \
	    "variables that --context names, in the memory of their processes; once a wait") \
	ROW(NEED_RUNQ_WHY, NEED_COMM, FROM_RUNQ, 0, 0, COST_SAMPLED, "runqwhy", \
	    "/proc/PID/task/TID/stat and cgroup of threads in RQ, cpu.stat of groups with a quota") \
	ROW(NEED_BLOCK, 0, FROM_CAPTURE, IS_EARLY, SEES_REQUESTS, COST_EVENT, "block", \
	    "requests to block devices, three programs each; their map, once a scan") \
	ROW(NEED_IRQ, 0, FROM_CAPTURE, IS_EARLY, SEES_IRQS, COST_EVENT, "irq", \
	    "interrupts, two programs each; their map, once a scan") \
	ROW(NEED_USTACK, 0, FROM_STACKS, 0, KEEPS_REGISTERS | KEEPS_STACKS | KEEPS_PROGRAM, COST_SAMPLED, "ustack", \
	    "saved registers or a perf sample, the thread's memory, and files with its code") \
	ROW(NEED_KSTACK, 0, FROM_STACKS, 0, KEEPS_STACKS, COST_SAMPLED, "kstack", \
	    "/proc/TID/stack, or a perf sample") \
	ROW(NEED_BLOCKER, NEED_COMM | NEED_WAITS, FROM_CHAINS, 0, 0, COST_EVENT, "blocker", \
	    "waits; locks and threads of other ends, read anew for each scan; block and wakeup, where the host has them") \
	ROW(NEED_NEIGHBOUR, NEED_BLOCKER, FROM_CHAINS, 0, 0, COST_SAMPLED, "neighbour", \
	    "control groups of threads in RQ, and of those on their CPUs") \
	ROW(NEED_CHAIN, NEED_BLOCKER | NEED_WAIT_CLASS, FROM_CHAINS, 0, 0, COST_SAMPLED, "chain", \
	    "blocker, of each thread that a chain leads to") \
	ROW(NEED_PATH, NEED_COMM | NEED_WAIT_CLASS, FROM_WAKEUPS, 0, KEEPS_WAKES, COST_EVENT, "path", \
	    "a row for each wake-up that ends a wait which a scan has seen; block, where the host has it") \
	ROW(NEED_CALL_TIME, NEED_SYSCALL, FROM_CALL, 0, SEES_CALLS, COST_EVENT, "calls", \
	    "a probe at each system call") \
	ROW(NEED_STACK, NEED_USTACK | NEED_KSTACK, FROM_STACKS, IS_KEPT, 0, COST_SAMPLED, "stack", \
	    "ustack and kstack, folded") \
	ROW(NEED_UFILES, NEED_USTACK, FROM_STACKS, 0, 0, COST_SAMPLED, "ufiles", \
	    "ustack, with the files' build-ids") \
	ROW(NEED_WAKER_STACK, NEED_WAKER | NEED_USTACK | NEED_KSTACK, FROM_STACKS, IS_KEPT, 0, COST_SAMPLED, "wakerstack", \
	    "user and kernel stack of the thread that was the last waker")

/* For sets of needs: the need of a row, if its source, traits or probes are these. */
#define NEED_IF_(need, condition) | ((condition) ? (need) : 0)
#define NEED_IF_EARLY_(need, implies, from, traits, ...) NEED_IF_(need, (traits) & IS_EARLY)
#define NEED_IF_KEPT_(need, implies, from, traits, ...) NEED_IF_(need, (traits) & IS_KEPT)
#define NEED_IF_OF_THREAD_(need, implies, from, traits, ...) NEED_IF_(need, (traits) & IS_OF_THREAD)
#define NEED_IF_SHOWN_(need, implies, from, traits, ...) NEED_IF_(need, (traits) & IS_SHOWN)
#define NEED_IF_OF_EVENT_(need, implies, from, traits, ...) NEED_IF_(need, (traits) & IS_OF_EVENT)
#define NEED_IF_RECORD_(need, implies, from, ...) NEED_IF_(need, (from) == FROM_RECORD)
#define NEED_IF_PROCESS_(need, implies, from, ...) NEED_IF_(need, (from) == FROM_PROCESS)
#define NEED_IF_VALUES_(need, implies, from, ...) NEED_IF_(need, (from) == FROM_VALUES)
#define NEED_IF_WAIT_(need, implies, from, ...) NEED_IF_(need, (from) == FROM_WAIT)
#define NEED_IF_APP_(need, implies, from, ...) NEED_IF_(need, (from) == FROM_APP)
#define NEED_IF_DERIVED_(need, implies, from, ...) NEED_IF_(need, (from) == FROM_OTHERS)
#define NEED_IF_CALL_(need, implies, from, ...) NEED_IF_(need, (from) >= FROM_CALL && (from) < FROM_WAIT)
#define NEED_IF_STACKS_(need, implies, from, ...) NEED_IF_(need, (from) == FROM_STACKS)
#define NEED_IF_CHAINS_(need, implies, from, ...) NEED_IF_(need, (from) == FROM_CHAINS)
#define NEED_IF_SETTLED_(need, implies, from, ...) NEED_IF_(need, (from) >= FROM_RUNQ && (from) < FROM_WAKEUPS)
#define NEED_IF_REGISTERS_(need, implies, from, traits, probes, ...) NEED_IF_(need, (probes) & KEEPS_REGISTERS)
#define NEED_IF_PROBED_(need, implies, from, traits, probes, cost, ...) \
	NEED_IF_(need, (probes) & (KEEPS_WAKES | SEES_REQUESTS | SEES_CALLS | SEES_IRQS))
/* clang-format on */

#define NEEDS_EARLY (UINT64_C(0) SAMPLE_NEEDS(NEED_IF_EARLY_))
#define NEEDS_KEPT (UINT64_C(0) SAMPLE_NEEDS(NEED_IF_KEPT_))
#define NEEDS_OF_THREADS (UINT64_C(0) SAMPLE_NEEDS(NEED_IF_OF_THREAD_))
#define NEEDS_OF_EVENTS (UINT64_C(0) SAMPLE_NEEDS(NEED_IF_OF_EVENT_))
#define NEEDS_SHOWN (UINT64_C(0) SAMPLE_NEEDS(NEED_IF_SHOWN_))
/* Needs that lookups can serve of a thread at any time; the name is in the record instead. */
#define NEEDS_ANYTIME (NEEDS_OF_THREADS & ~NEED_COMM)

#define NEEDS_OF_RECORD (UINT64_C(0) SAMPLE_NEEDS(NEED_IF_RECORD_))
#define NEEDS_OF_PROCESS (UINT64_C(0) SAMPLE_NEEDS(NEED_IF_PROCESS_))
#define NEEDS_PROC_VALUES (UINT64_C(0) SAMPLE_NEEDS(NEED_IF_VALUES_))
#define NEEDS_OF_CALL (UINT64_C(0) SAMPLE_NEEDS(NEED_IF_CALL_)) /* call, wait class, file */
#define NEEDS_OF_WAIT (UINT64_C(0) SAMPLE_NEEDS(NEED_IF_WAIT_))
#define NEEDS_OF_OTEL (NEED_SERVICE | NEED_TRACE | NEED_CONTEXT)
#define NEEDS_OF_MODULES (NEEDS_OF_OTEL | NEED_VARIABLES) /* of any program, by its mappings */
#define NEEDS_OF_APP (UINT64_C(0) SAMPLE_NEEDS(NEED_IF_APP_))
#define NEEDS_DERIVED (UINT64_C(0) SAMPLE_NEEDS(NEED_IF_DERIVED_))
#define NEEDS_STACKS (UINT64_C(0) SAMPLE_NEEDS(NEED_IF_STACKS_))
#define NEEDS_CHAINS (UINT64_C(0) SAMPLE_NEEDS(NEED_IF_CHAINS_))
#define NEEDS_SETTLED (UINT64_C(0) SAMPLE_NEEDS(NEED_IF_SETTLED_))

/* Needs that require saved registers. Events bring theirs. */
#define NEEDS_REGISTERS (UINT64_C(0) SAMPLE_NEEDS(NEED_IF_REGISTERS_))
/* Needs that require a probe of their own, at a cost also for samplers that do not have them.
 * Samplers that attach to --share may have all other needs; these only if the one that shares has
 * them itself. */
#define NEEDS_PROBED (UINT64_C(0) SAMPLE_NEEDS(NEED_IF_PROBED_))

/* The needs with all needs that they imply. */
uint64_t sample_needs_close(uint64_t needs);

#endif
