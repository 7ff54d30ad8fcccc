/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Holder of a lock on a file that a thread waits for in flock(2) or fcntl(2). */
#include "proc/proc.h"
#include "waits/waits.h"
#include "base/text.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LOCKS_BYTES 65536 /* some 900 locks of the host; the rest is ignored */
#define SETLKW64 14	  /* F_SETLKW64 of 32-bit calls, and F_OFD_SETLKW: asm-generic/fcntl.h */
#define OFD_SETLKW 38

/* Parses a line of proc_locks(5): "1: FLOCK ADVISORY WRITE PID ..." is a held lock, and the lines
 * "1: -> FLOCK ADVISORY WRITE PID ..." after it wait for it. A pid of -1 is that of an open file
 * description. */
static void line_take(struct file_locks *locks, const char *line, long long *holder)
{
	uint64_t *found;
	long long pid;
	bool added;

	if (sscanf(line, "%*d: -> %*s %*s %*s %lld", &pid) == 1) {
		found = index_put(&locks->holders, (uint64_t)pid, &added);
		if (added && *holder > 0 && *holder != pid)
			*found = (uint64_t)*holder;
	} else if (sscanf(line, "%*d: %*s %*s %*s %lld", holder) != 1) {
		*holder = 0;
	}
}

static void locks_read(struct file_locks *locks, const char *root)
{
	static char text[LOCKS_BYTES];
	long long holder = 0;
	char path[PATH_MAX];
	size_t length = 0;
	ssize_t got;
	int fd;

	index_clear(&locks->holders);
	snprintf(path, sizeof(path), "%s/locks", root);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	/* each read returns one memory page at most */
	while ((got = read(fd, text + length, sizeof(text) - 1 - length)) > 0)
		length += (size_t)got;
	close(fd);
	text[length] = '\0';
	for (char *line = text, *end; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		line_take(locks, line, &holder);
	}
}

/* The process whose lock the thread's process waits for. 0: not known. */
static int64_t holder_find(const struct wait *wait)
{
	struct file_locks *locks = wait_file_locks(wait);
	const uint64_t *holder;

	if (locks->read_ns != wait->now_ns)
		locks_read(locks, wait_root(wait));
	locks->read_ns = wait->now_ns;
	holder = index_find(&locks->holders, (uint64_t)wait->pid);
	return holder ? (int64_t)*holder : 0;
}

void flock_describe(struct wait *wait)
{
	int64_t pid = holder_find(wait);

	wait->facts.kind = WAIT_LOCK;
	text_add_string(wait->text, "lock");
	if (wait->link)
		text_add_format(wait->text, " on %s", wait->link);
	if (!pid)
		return;
	wait->facts.pid = pid;
	text_add_string(wait->text, " held");
	wait_add_thread(wait, " by ", pid);
}

/* Only these commands of fcntl(2) wait for a lock. */
void fcntl_describe(struct wait *wait)
{
	int command = (int)wait->arg[1];

	if (command == F_SETLKW || command == SETLKW64 || command == OFD_SETLKW)
		flock_describe(wait);
	else
		file_describe(wait);
}
