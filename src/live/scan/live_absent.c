/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/scan/live_absent.h"
#include "keeper/avoid.h"
#include "kernel/task_query.h"
#include "live/context/live_limits.h"
#include "proc/page_cache.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

static const char *registers_lack(const struct kernel *kernel)
{
	int err = kernel->compiled.calibration;

	if (kernel->compiled.stack_registers)
		return NULL;
	return !err || err == -ENOENT
		       ? "the saved registers were not found on the kernel stack; tsnap --check"
		       : live_limits_words("the saved registers were not found on the kernel stack",
					   "a program at this process's own context switch", -err);
}

static const char *class_lacks(const struct kernel *kernel)
{
	return registers_lack(kernel) ? "no sleeping thread counts as work without its system call"
				      : NULL;
}

static const char *wakeups_lack(const struct kernel *kernel)
{
	return kernel->plan.chosen[GROUP_WAKE]
		       ? NULL
		       : "this kernel offers no probe for wake-ups; tsnap --check";
}

static const char *io_lacks(const struct kernel *kernel)
{
	(void)kernel;
	if (!access("/proc/self/io", F_OK))
		return NULL;
	return errno == ENOENT ? "this kernel does not count it (CONFIG_TASK_IO_ACCOUNTING)"
			       : live_limits_words("it can't be read", "/proc/self/io", errno);
}

static const char *block_lacks(const struct kernel *kernel)
{
	return kernel->compiled.maps[KERNEL_MAP_BLOCK] >= 0
		       ? NULL
		       : "no probe of block devices: none is offered, or the tsnap that shares its "
			 "probes did not want it";
}

static const char *irqs_lack(const struct kernel *kernel)
{
	return kernel->compiled.maps[KERNEL_MAP_IRQS] >= 0
		       ? NULL
		       : "no probe of interrupts: none is offered, or the tsnap that shares its "
			 "probes did not want it";
}

static const char *call_time_lacks(const struct kernel *kernel)
{
	return kernel->plan.chosen[GROUP_CALL]
		       ? NULL
		       : "no probe where system calls begin: none is "
			 "offered, or the tsnap that shares its probes did not want it";
}

static const char *cache_lacks(const struct kernel *kernel)
{
	(void)kernel;
	return page_cache_lacks();
}

static const char *trace_lacks(const struct kernel *kernel)
{
	(void)kernel;
	return task_query_has_thread_pointer()
		       ? NULL
		       : "where a thread's thread-local storage is can't be read: that needs a "
			 "kernel from 5.10 on, with BTF";
}

/* Needs that /proc does not meet, where no program writes records. All reports want accounts of
 * processes and of sleep: what these lack is said at the start (live_proc.c). */
static const struct source_absent proc_rows[] = {
	{NEED_WAKER, "/proc does not show who woke a thread"},
	{NEED_BLOCK, "/proc does not show requests to block devices"},
	{NEED_IRQ, "/proc does not show what interrupts a CPU"},
	{NEED_CALL_TIME, "/proc does not show when a system call began"},
	{NEED_TRACE, "/proc does not show where a thread's thread-local storage is"},
	{NEED_CONTEXT, "/proc does not show where a thread's thread-local storage is"},
	{NEED_RUNQ_WHY, "/proc does not show which thread has a CPU"},
	{NEED_USTACK, "/proc does not show the registers that a walk of a program's stack needs"},
};

/* A row for each need that a host may not meet: why it does not, or NULL. */
static const struct {
	uint64_t need;
	const char *(*why)(const struct kernel *kernel);
} absent_rows[] = {
	{NEED_SYSCALL, registers_lack}, {NEED_WAIT_CLASS, class_lacks},
	{NEED_WAKER, wakeups_lack},	{NEED_IO, io_lacks},
	{NEED_BLOCK, block_lacks},	{NEED_CALL_TIME, call_time_lacks},
	{NEED_TRACE, trace_lacks},	{NEED_CONTEXT, trace_lacks},
	{NEED_CACHE, cache_lacks},	{NEED_IRQ, irqs_lack},
};

_Static_assert(sizeof(absent_rows) / sizeof(absent_rows[0]) +
			       sizeof(proc_rows) / sizeof(proc_rows[0]) <=
		       SOURCE_ABSENT_MAX,
	       "room for all");

static void proc_describe(uint64_t needs, struct source_status *status)
{
	for (size_t i = 0; i < sizeof(proc_rows) / sizeof(proc_rows[0]); i++)
		if (needs & proc_rows[i].needs)
			status->absent[status->absent_count++] = proc_rows[i];
}

void live_absent_describe(const struct kernel *kernel, uint64_t needs, struct source_status *status)
{
	if (kernel->table.own) {
		proc_describe(needs, status);
		needs &= NEED_IO | NEED_CACHE;
	}
	for (size_t i = 0; i < sizeof(absent_rows) / sizeof(absent_rows[0]); i++) {
		const char *why = needs & absent_rows[i].need ? absent_rows[i].why(kernel) : NULL;

		if (why)
			status->absent[status->absent_count++] =
				(struct source_absent){absent_rows[i].need, why};
	}
}

/* Adds how many subjects are avoided at present, and which. words stay valid until the next call
 * for them. */
static void avoided_add(struct source_status *status, const char *begin,
			size_t (*list)(struct text *words), struct text *words)
{
	struct source_missed *missed;
	size_t count;

	text_clear(words);
	text_add_string(words, begin);
	count = list(words);
	if (count) {
		missed = source_status_miss(status, text_string(words), count);
		missed->standing = missed->always = true;
	}
}

void live_avoided_describe(struct source_status *status)
{
	static struct text processes, directories;

	avoided_add(status,
		    "processes not read in full because that would hang: ", avoid_processes_text,
		    &processes);
	avoided_add(status,
		    "sources of names skipped because reading them hangs: ", avoid_files_text,
		    &directories);
	source_status_miss_any(status,
			       "reads of /proc files skipped because the process was locked",
			       avoid_locked_count());
}
