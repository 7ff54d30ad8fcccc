/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Pages that a process has to give which serves page faults by userfaultfd(2), as the memory server
 * of a virtual machine does. */
#include "proc/proc.h"
#include "waits/wait_object.h"

#include <linux/kcmp.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define USERFAULT_LINK "anon_inode:[userfaultfd]"
#define FDS_MAX 1024 /* descriptors that are read of the waiting process */

/* True if page faults wait on the process's descriptor. */
static bool has_faults(const char *root, int64_t pid, int fd)
{
	return proc_fd_is(root, 0, pid, fd, USERFAULT_LINK) &&
	       !strstr(proc_fdinfo_read(root, 0, pid, fd, NULL), "total:\t0\n");
}

/* The process's only descriptor that page faults wait on; -1: it has none, or several. */
static int faults_find(const char *root, int64_t pid)
{
	DIR *fds = proc_dir_open(root, pid, "fd");
	int left = FDS_MAX, found = -1, count = 0;
	int64_t fd;

	while (left-- && (fd = proc_dir_next(fds)) >= 0) {
		if (!has_faults(root, pid, (int)fd))
			continue;
		found = (int)fd;
		count++;
	}
	if (fds)
		closedir(fds);
	return count == 1 ? found : -1;
}

/* which: "userfaultfd", one that page faults wait on; with " is PID FD" also the open file that
 * this process has, with " not PID FD" another one. */
static bool server_is(const char *root, int64_t pid, int fd, const char *which)
{
	long long that_pid;
	int that_fd;
	char word[4];

	if (!has_faults(root, pid, fd))
		return false;
	return sscanf(which, "userfaultfd %3s %lld %d", word, &that_pid, &that_fd) != 3 ||
	       (*word == 'i') == !syscall(SYS_kcmp, (pid_t)that_pid, (pid_t)pid, KCMP_FILE,
					  (unsigned long)that_fd, (unsigned long)fd);
}

static int64_t server_find(struct wait *wait, const char *which)
{
	static const struct holder_file server = {USERFAULT_LINK, server_is};

	return wait_find_file(wait, &server, which);
}

/* The process that serves the thread's faults: it has the file that the thread's process has, too;
 * or, as that may have closed it, the host's only one that faults wait on. 0: not known. */
static int64_t server_of(struct wait *wait)
{
	const char *root = wait->waits->root;
	int fd = faults_find(root, wait->pid);
	char which[64];
	int64_t pid;

	if (fd >= 0) {
		snprintf(which, sizeof(which), "userfaultfd is %lld %d", (long long)wait->pid, fd);
		return server_find(wait, which);
	}
	pid = server_find(wait, "userfaultfd");
	fd = pid ? faults_find(root, pid) : -1;
	if (fd < 0)
		return 0;
	snprintf(which, sizeof(which), "userfaultfd not %lld %d", (long long)pid, fd);
	return server_find(wait, which) || wait->pending ? 0 : pid;
}

static void userfault_describe(struct wait *wait)
{
	int64_t pid = 0;

	wait->facts.stored = true;
	text_add_string(wait->text, "page fault (userfaultfd)");
	if (!wait->numbers_only && wait->waits->own_ids)
		pid = server_of(wait);
	if (pid != wait->pid)
		wait_on_server(wait, " for ", pid);
}

const struct wait_object userfault_object = {
	.kind = WAIT_FILE,
	.functions = (const char *const[]){"handle_userfault", NULL},
	.describe = userfault_describe,
	.edge = server_edge,
	.searched = true,
};
