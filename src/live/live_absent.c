/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/live_absent.h"
#include "base/avoid.h"
#include "live/context/live_limits.h"

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
	return errno == ENOENT ? "this kernel keeps no account of it (CONFIG_TASK_IO_ACCOUNTING)"
			       : live_limits_words("it can't be read", "/proc/self/io", errno);
}

static const char *block_lacks(const struct kernel *kernel)
{
	return kernel->compiled.maps[KERNEL_MAP_BLOCK] >= 0
		       ? NULL
		       : "no probe of block devices: none is offered, or the tsnap that shares its "
			 "probes did not want it";
}

static const char *call_time_lacks(const struct kernel *kernel)
{
	return kernel->plan.chosen[GROUP_CALL]
		       ? NULL
		       : "no probe where system calls begin: none is "
			 "offered, or the tsnap that shares its probes did not want it";
}

/* A row for each need that a host may not meet: why it does not, or NULL. */
static const struct {
	uint64_t need;
	const char *(*why)(const struct kernel *kernel);
} absent_rows[] = {
	{NEED_SYSCALL, registers_lack}, {NEED_WAIT_CLASS, class_lacks},
	{NEED_WAKER, wakeups_lack},	{NEED_IO, io_lacks},
	{NEED_BLOCK, block_lacks},	{NEED_CALL_TIME, call_time_lacks},
};

_Static_assert(sizeof(absent_rows) / sizeof(absent_rows[0]) <= SOURCE_ABSENT_MAX, "room for all");

void live_absent_describe(const struct kernel *kernel, uint64_t needs, struct source_status *status)
{
	for (size_t i = 0; i < sizeof(absent_rows) / sizeof(absent_rows[0]); i++) {
		const char *why = needs & absent_rows[i].need ? absent_rows[i].why(kernel) : NULL;

		if (why)
			status->absent[status->absent_count++] =
				(struct source_absent){absent_rows[i].need, why};
	}
}

void live_avoided_describe(struct source_status *status)
{
	static char words[2][512];
	size_t count;
	const char *which = avoid_processes_text(&count);

	if (which) {
		snprintf(words[0], sizeof(words[0]),
			 "processes that were not looked at, because a look does not end: %s",
			 which);
		source_status_miss(status, words[0], count)->standing = true;
	}
	which = avoid_files_text(&count);
	if (which) {
		snprintf(words[1], sizeof(words[1]),
			 "file systems that were not looked at, because a look does not end: %s",
			 which);
		source_status_miss(status, words[1], count)->standing = true;
	}
	if (avoids_users())
		source_status_lack(status,
				   "kind of data: names of users (the name service does not "
				   "answer)");
}
