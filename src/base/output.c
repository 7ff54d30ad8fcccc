/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "base/output.h"
#include "base/clock.h"
#include "base/progress.h"
#include "base/signals.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE_WAIT_MS 1000 /* longest wait for the reader after SIGTERM */
#define ALL_WAIT_NS (5 * NS_PER_SECOND)

/* Removes the bytes of a half line from a file: a line that a full disk cut in half is worse than
 * none. */
static void output_trim(int fd, size_t half_line)
{
	struct stat stat;
	off_t end = lseek(fd, 0, SEEK_CUR);

	if (!half_line || fstat(fd, &stat) || !S_ISREG(stat.st_mode) || end != stat.st_size)
		return;
	if (!ftruncate(fd, end - (off_t)half_line))
		lseek(fd, 0, SEEK_END);
}

static int wait_ms(int64_t terminated_ns)
{
	int64_t left_ms = (terminated_ns + ALL_WAIT_NS - clock_monotonic_ns()) / NS_PER_MS;

	return left_ms < 0 ? 0 : left_ms < PAGE_WAIT_MS ? (int)left_ms : PAGE_WAIT_MS;
}

/* Writes like write(2); after SIGTERM it waits until a pipe has space, and writes only what the
 * pipe takes at once. */
static ssize_t some_write(int fd, const char *bytes, size_t length)
{
	struct pollfd wait = {.fd = fd, .events = POLLOUT};
	int64_t terminated_ns = signals_terminated_ns();
	int ready;

	if (!terminated_ns)
		return write(fd, bytes, length);
	ready = poll(&wait, 1, wait_ms(terminated_ns));
	if (!ready)
		errno = OUTPUT_UNREAD;
	return ready > 0 ? write(fd, bytes, length < PIPE_BUF ? length : PIPE_BUF) : -1;
}

int output_write(int fd, const char *bytes, size_t length)
{
	size_t done = 0, half_line = 0;

	while (done < length) {
		ssize_t written = some_write(fd, bytes + done, length - done);
		int err = errno;

		if (written >= 0) {
			done += (size_t)written;
		} else if (err == EAGAIN) {
			/* the descriptor is non-blocking: a process that shares it made it so */
			struct pollfd wait = {.fd = fd, .events = POLLOUT};

			poll(&wait, 1, -1);
		} else if (err != EINTR) {
			while (half_line < done && bytes[done - half_line - 1] != '\n')
				half_line++;
			output_trim(fd, half_line);
			return -err;
		}
	}
	return 0;
}

bool output_is_ready(int fd, size_t length)
{
	struct stat stat;
	int capacity, unread;

	if (!fstat(fd, &stat) &&
	    (S_ISREG(stat.st_mode) || (S_ISCHR(stat.st_mode) && !isatty(fd)))) /* /dev/null */
		return true;
	/* the capacity of a pipe is in memory pages, which unread bytes may fill only in part */
	capacity = fcntl(fd, F_GETPIPE_SZ);
	return capacity > 0 && length <= (size_t)capacity && !ioctl(fd, FIONREAD, &unread) &&
	       !unread;
}

void output_complain(const char *words)
{
	struct text out = {0};

	progress_end();
	progress_sampling_end();
	while (*words) {
		struct text line = {0};
		size_t length = strcspn(words, "\n");

		text_add(&line, words, length);
		text_add_string(&out, "tsnap: ");
		text_add_printable(&out, text_string(&line));
		text_add_char(&out, '\n');
		text_done(&line);
		words += length + (words[length] == '\n');
	}
	output_write(STDERR_FILENO, text_string(&out), out.length);
	text_done(&out);
}
