/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sample/needs_table.h"

const char *const needs_cost_names[COST_COUNT] = {
	[COST_FREE] = "free",
	[COST_SAMPLED] = "when sampled",
	[COST_EVENT] = "per event",
};

const struct needs_row needs_rows[] = {
	{0, COST_FREE, "record", "the scan, and the thread's record"},
	{NEED_COMM, COST_FREE, "name",
	 "the record; a probe where a thread is renamed, a rare event"},
	{NEED_WAKER, COST_FREE, "wakeup", "the record; wake-ups are seen for the states anyway"},
	{NEED_TOTALS, COST_FREE, "totals", "the record; added up at switches, seen anyway"},
	{NEED_SLEEP, COST_SAMPLED, "sleeps", "totals of all threads that sleep, once a report"},
	{NEED_PROCESSES, COST_EVENT, "processes",
	 "forks, execs and exits, which reports count; rare events"},
	{NEED_COMMSUM, COST_SAMPLED, "commsum", "comm, folded"},
	{NEED_USER, COST_SAMPLED, "user", "owner of /proc/PID/task/TID, and the user database"},
	{NEED_CGROUP, COST_SAMPLED, "cgroup", "/proc/PID/task/TID/cgroup"},
	{NEED_CGROUP_NAMES, COST_SAMPLED, "cgroupnames", "cgroup, parsed"},
	{NEED_CONTAINER_NAME, COST_SAMPLED, "containers",
	 "cgroup, and files of the container's runtime and of Kubernetes, once a minute"},
	{NEED_PID_NS, COST_SAMPLED, "pidns", "/proc/PID/task/TID/ns/pid, and status"},
	{NEED_PPID, COST_SAMPLED, "parent", "/proc/PID/task/TID/stat, once per process"},
	{NEED_EXE, COST_SAMPLED, "exe", "/proc/PID/task/TID/exe, once per process"},
	{NEED_CMDLINE, COST_SAMPLED, "cmdline", "/proc/PID/task/TID/cmdline, once per process"},
	{NEED_STAT, COST_SAMPLED, "stat", "/proc/PID/task/TID/stat"},
	{NEED_STATUS, COST_SAMPLED, "status", "/proc/PID/task/TID/status"},
	{NEED_IO, COST_SAMPLED, "io", "/proc/PID/task/TID/io"},
	{NEED_WAKER_COMM, COST_SAMPLED, "waker", "/proc/TID/comm of the waker"},
	{NEED_WAKER_PID, COST_SAMPLED, "wakerpid", "/proc/TID/status of the waker"},
	{NEED_SYSCALL, COST_SAMPLED, "registers",
	 "saved registers on the kernel stack; before 5.10 kept at every switch"},
	{NEED_WHY, COST_SAMPLED, "why",
	 "registers; for some calls also what is waited for, once per wait"},
	{NEED_FILE, COST_SAMPLED, "file", "registers, and /proc/PID/task/TID/fd/FD"},
	{NEED_FILENAMESUM, COST_SAMPLED, "filenamesum", "filename, folded"},
	{NEED_FILETYPE, COST_SAMPLED, "filetype", "file, and stat(2) of it"},
	{NEED_CONNECTION, COST_SAMPLED, "sockets",
	 "file, and the sockets of the network namespace (sock_diag)"},
	{NEED_WAITS, COST_SAMPLED, "waits",
	 "file, /proc/PID/fdinfo, locks and descriptor sets in the thread's memory, other ends"},
	{NEED_WAITS_ONSUM, COST_SAMPLED, "waitsonsum", "waits, folded"},
	{NEED_WCHAN, COST_SAMPLED, "wchan", "/proc/TID/wchan"},
	{NEED_RUNQ_WHY, COST_SAMPLED, "runqwhy",
	 "/proc/PID/task/TID/stat and cgroup of threads in RQ, cpu.stat of groups with a quota"},
	{NEED_BLOCK, COST_EVENT, "block",
	 "requests to block devices, three programs each; their map, once a scan"},
	{NEED_USTACK, COST_SAMPLED, "ustack",
	 "saved registers or a perf sample, the thread's memory, and files with its code"},
	{NEED_KSTACK, COST_SAMPLED, "kstack", "/proc/TID/stack, or a perf sample"},
	{NEED_BLOCKER, COST_EVENT, "blocker",
	 "waits; locks and threads of other ends, read anew for each scan; block and wakeup, where "
	 "the host has them"},
	{NEED_CHAIN, COST_SAMPLED, "chain", "blocker, of each thread that a chain leads to"},
	{NEED_PATH, COST_EVENT, "path",
	 "a row for each wake-up that ends a wait which a scan has seen; block, where the host has "
	 "it"},
	{NEED_CALL_TIME, COST_EVENT, "calls", "a probe at each system call"},
	{NEED_STACK, COST_SAMPLED, "stack", "ustack and kstack, folded"},
	{NEED_UFILES, COST_SAMPLED, "ufiles", "ustack, with the files' build-ids"},
	{NEED_WAKER_STACK, COST_SAMPLED, "wakerstack",
	 "user and kernel stack of the thread that was the last waker"},
};

const size_t needs_row_count = sizeof(needs_rows) / sizeof(needs_rows[0]);

uint64_t needs_first(uint64_t needs)
{
	for (size_t i = 0; i < needs_row_count; i++)
		if (needs & needs_rows[i].need)
			return needs_rows[i].need;
	return 0;
}

const struct needs_row *needs_dearest(uint64_t needs)
{
	const struct needs_row *row = &needs_rows[0];

	for (size_t i = 0; i < needs_row_count; i++)
		if (needs & needs_rows[i].need)
			row = &needs_rows[i];
	return row;
}
