/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/shown_pid.h"

#include <stdlib.h>
#include <unistd.h>

pid_t shown_pid(void)
{
	char pid[32];
	ssize_t length = readlink("/proc/self", pid, sizeof(pid) - 1);

	pid[length < 0 ? 0 : length] = '\0';
	return (pid_t)strtol(pid, NULL, 10);
}
