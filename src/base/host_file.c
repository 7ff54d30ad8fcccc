/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/host_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

ssize_t host_file_read(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got;

	text[0] = 0;
	if (fd < 0)
		return -errno;
	got = read(fd, text, size - 1);
	if (got < 0)
		got = -errno;
	close(fd);
	if (got < 0)
		return got;
	text[got] = 0;
	if (got && text[got - 1] == '\n')
		text[--got] = 0;
	return got;
}

pid_t shown_pid(void)
{
	char pid[32];
	ssize_t length = readlink("/proc/self", pid, sizeof(pid) - 1);

	pid[length < 0 ? 0 : length] = '\0';
	return (pid_t)strtol(pid, NULL, 10);
}
