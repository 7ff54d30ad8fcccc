/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Who holds a lock on a file that a thread waits for in flock(2) or fcntl(2). */
#include "lookup/proc.h"
#include "lookup/waits.h"
#include "base/text.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LOCKS_BYTES 65536 /* some 900 locks of the host; what is beyond is not looked at */
#define SETLKW64 14	  /* F_SETLKW64 of 32-bit calls, and F_OFD_SETLKW: asm-generic/fcntl.h */
#define OFD_SETLKW 38

/* The process whose lock the thread's process waits for. proc_locks(5): "1: FLOCK ADVISORY WRITE
 * PID
 * ..." is held, lines "1: -> FLOCK ADVISORY WRITE PID ..." below wait for it. 0: not told; a pid of
 * -1 is that of an open file description. */
static int64_t holder_find(const struct wait *wait)
{
	static char locks[LOCKS_BYTES];
	long long pid, holder = 0;
	char path[PATH_MAX];
	size_t length = 0;
	ssize_t got;
	int fd;

	snprintf(path, sizeof(path), "%s/locks", wait_root(wait));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	/* the kernel gives a page at a time */
	while ((got = read(fd, locks + length, sizeof(locks) - 1 - length)) > 0)
		length += (size_t)got;
	close(fd);
	locks[length] = '\0';
	for (char *line = locks, *end; (end = strchr(line, '\n')); line = end + 1) {
		*end = '\0';
		if (sscanf(line, "%*d: -> %*s %*s %*s %lld", &pid) == 1) {
			if (pid == wait->pid)
				return holder > 0 && holder != wait->pid ? holder : 0;
		} else if (sscanf(line, "%*d: %*s %*s %*s %lld", &holder) != 1) {
			holder = 0;
		}
	}
	return 0;
}

void flock_tell(struct wait *wait)
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

/* Other commands than these do not wait for a lock. */
void fcntl_tell(struct wait *wait)
{
	int command = (int)wait->arg[1];

	if (command == F_SETLKW || command == SETLKW64 || command == OFD_SETLKW)
		flock_tell(wait);
	else
		file_tell(wait);
}
