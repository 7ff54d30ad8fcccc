/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Functions for targets that read a file. */
#ifndef TSNAP_TESTS_FUZZ_FILE_H
#define TSNAP_TESTS_FUZZ_FILE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define FUZZ_PATH_SIZE 64

static inline void must(int good, const char *what)
{
	if (good)
		return;
	fprintf(stderr, "broken: %s\n", what);
	abort();
}

/* Makes a file with these bytes; returns its path, and the descriptor to close. */
static inline int fuzz_file_make(const void *bytes, size_t length, char path[FUZZ_PATH_SIZE])
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	must(fd >= 0 && write(fd, bytes, length) == (ssize_t)length, "memfd");
	snprintf(path, FUZZ_PATH_SIZE, "/proc/self/fd/%d", fd);
	return fd;
}

#endif
