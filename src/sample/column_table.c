/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sample/column.h"

#include <string.h>

#define AT(member) offsetof(struct sample, member)

const struct column sample_columns[] = {
	{"timestamp", "TIMESTAMP", "when the scan was made (UTC)", KIND_TIME, ROLE_KEY, 0, 27,
	 AT(time_us)},
	{"weight_us", "WEIGHT_US", "time that the sample stands for: since the previous scan",
	 KIND_NUMBER, ROLE_SUM, 0, 9, AT(weight_us)},

	{"tid", "TID", "thread id", KIND_NUMBER, ROLE_KEY, 0, 7, AT(tid)},
	{"pid", "PID", "process id (thread group)", KIND_NUMBER, ROLE_KEY, 0, 7, AT(pid)},
	{"ppid", "PPID", "process id of the parent", KIND_NUMBER, ROLE_KEY, NEED_PPID, 7, AT(ppid)},
	{"user", "USER", "user that the thread acts as (effective uid)", KIND_TEXT, ROLE_KEY,
	 NEED_USER, 8, AT(user)},
	{"uid", "UID", "effective user id", KIND_NUMBER, ROLE_KEY, NEED_USER, 5, AT(uid)},
	{"comm", "COMM", "name of the thread", KIND_TEXT, ROLE_KEY, NEED_COMM, 15, AT(comm)},
	{"commsum", "COMM*", "name of the thread, each run of digits as one *", KIND_TEXT, ROLE_KEY,
	 NEED_COMMSUM, 15, AT(commsum)},
	{"cmdline", "CMDLINE", "command line of the process", KIND_TEXT, ROLE_KEY, NEED_CMDLINE, 20,
	 AT(cmdline)},
	{"exe", "EXE", "path of the program file", KIND_TEXT, ROLE_KEY, NEED_EXE, 20, AT(exe)},
	{"cgroup", "CGROUP", "path of the control group", KIND_TEXT, ROLE_KEY, NEED_CGROUP, 20,
	 AT(cgroup)},
	{"kthread", "KTHREAD", "1: kernel thread, 0: not", KIND_NUMBER, ROLE_KEY, 0, 7,
	 AT(kthread)},

	{"state", "STATE", "what the thread is doing (see below)", KIND_STATE, ROLE_KEY, 0, 5,
	 AT(state)},
	{"state_us", "STATE_US", "time in this state so far", KIND_NUMBER, ROLE_MAX, 0, 9,
	 AT(state_us)},
	{"cpu", "CPU", "CPU that the thread is on, or was on last", KIND_NUMBER, ROLE_KEY, 0, 3,
	 AT(cpu)},
	{"syscall", "SYSCALL", "system call that the thread is in", KIND_TEXT, ROLE_KEY,
	 NEED_SYSCALL, 15, AT(syscall)},
	{"syscall_nr", "SYSCALL_NR", "its number", KIND_NUMBER, ROLE_KEY, NEED_SYSCALL, 10,
	 AT(syscall_nr)},
	{"arg0", "ARG0", "its first argument", KIND_HEX, ROLE_KEY, NEED_SYSCALL, 18, AT(arg[0])},
	{"arg1", "ARG1", "its second argument", KIND_HEX, ROLE_KEY, NEED_SYSCALL, 18, AT(arg[1])},
	{"arg2", "ARG2", "its third argument", KIND_HEX, ROLE_KEY, NEED_SYSCALL, 18, AT(arg[2])},
	{"arg3", "ARG3", "its fourth argument", KIND_HEX, ROLE_KEY, NEED_SYSCALL, 18, AT(arg[3])},
	{"arg4", "ARG4", "its fifth argument", KIND_HEX, ROLE_KEY, NEED_SYSCALL, 18, AT(arg[4])},
	{"arg5", "ARG5", "its sixth argument", KIND_HEX, ROLE_KEY, NEED_SYSCALL, 18, AT(arg[5])},
	{"fd", "FD", "file descriptor among the arguments", KIND_NUMBER, ROLE_KEY, NEED_FILE, 4,
	 AT(fd)},
	{"filename", "FILENAME", "file, socket or pipe behind that descriptor", KIND_TEXT, ROLE_KEY,
	 NEED_FILE, 20, AT(filename)},
	{"filenamesum", "FILENAME*", "the same, each run of digits as one *", KIND_TEXT, ROLE_KEY,
	 NEED_FILENAMESUM, 20, AT(filenamesum)},
	{"stack", "STACK",
	 "frames of its stack, outermost first, with ; between; _[k]: kernel, _[j]: JIT, _[l]: "
	 "library",
	 KIND_TEXT, ROLE_KEY, NEED_STACK, 20, AT(stack)},

	{"waker_tid", "WAKER_TID", "thread that woke this one last", KIND_NUMBER, ROLE_KEY,
	 NEED_WAKER, 9, AT(waker_tid)},
	{"waker_comm", "WAKER_COMM", "name of that thread", KIND_TEXT, ROLE_KEY, NEED_WAKER_COMM,
	 15, AT(waker_comm)},

	{"cpu_us", "CPU_US", "exact time on a CPU since the thread's previous sample", KIND_NUMBER,
	 ROLE_SUM, NEED_TOTALS, 9, AT(cpu_us)},
	{"runq_us", "RUNQ_US", "exact time waiting for a CPU since then", KIND_NUMBER, ROLE_SUM,
	 NEED_TOTALS, 9, AT(runq_us)},
	{"dwait_us", "DWAIT_US", "exact time in state D since then", KIND_NUMBER, ROLE_SUM,
	 NEED_TOTALS, 9, AT(dwait_us)},
	{"sleep_us", "SLEEP_US", "exact time in state S since then", KIND_NUMBER, ROLE_SUM,
	 NEED_TOTALS, 9, AT(sleep_us)},
	{"vcsw", "VCSW", "voluntary context switches since then", KIND_NUMBER, ROLE_SUM,
	 NEED_TOTALS, 6, AT(vcsw)},
	{"ivcsw", "IVCSW", "involuntary context switches since then", KIND_NUMBER, ROLE_SUM,
	 NEED_TOTALS, 6, AT(ivcsw)},
};

const struct column_section column_sections[] = {
	{"The scan", "timestamp"},
	{"Who", "tid"},
	{"What it does", "state"},
	{"By whom", "waker_tid"},
	{"Exact, since the thread's previous sample", "cpu_us"},
};

const size_t column_section_count = sizeof(column_sections) / sizeof(column_sections[0]);

const size_t sample_column_count = sizeof(sample_columns) / sizeof(sample_columns[0]);

const struct column *sample_column_find(const char *name)
{
	for (size_t i = 0; i < sample_column_count; i++)
		if (!strcmp(sample_columns[i].name, name))
			return &sample_columns[i];
	return NULL;
}
