/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/priority.h"

#include <errno.h>
#include <sys/resource.h>

#define NICE_RAISED (-20)

/* Of the kernel, which has it for each thread; POSIX would have it for the process. */
void priority_raise(struct priority *before)
{
	*before = (struct priority){0};
	errno = 0;
	before->nice = getpriority(PRIO_PROCESS, 0);
	if (errno || before->nice > 0 || before->nice == NICE_RAISED)
		return;
	before->raised = !setpriority(PRIO_PROCESS, 0, NICE_RAISED);
}

void priority_restore(const struct priority *before)
{
	if (before->raised)
		setpriority(PRIO_PROCESS, 0, before->nice);
}
