/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CANNOT_EXEC 127

static void command_exec(const char *const *argv, pid_t parent)
{
	int null = open("/dev/null", O_RDONLY);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	if (null >= 0)
		dup2(null, STDIN_FILENO);
	setenv("PATH", COMMAND_PATH, 1);
	execvp(argv[0], (char *const *)argv);
	_exit(CANNOT_EXEC);
}

int command_run(const char *const *argv)
{
	pid_t parent = getpid(), child;
	int status;

	fflush(NULL);
	child = fork();
	if (child < 0)
		return -errno;
	if (!child)
		command_exec(argv, parent);
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_EXEC)
		return -ENOENT;
	return status ? -EIO : 0;
}
