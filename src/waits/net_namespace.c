/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "waits/net_namespace.h"
#include "proc/proc.h"
#include "base/thread.h"

#include <errno.h>
#include <linux/netlink.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define LINK_PREFIX "net:["
#define ANSWER_S 1 /* the kernel answers at once, or not at all */

static uint64_t link_number(const char *link)
{
	return strncmp(link, LINK_PREFIX, strlen(LINK_PREFIX)) != 0
		       ? 0
		       : strtoull(link + strlen(LINK_PREFIX), NULL, 10);
}

uint64_t net_namespace_of(const char *root, int64_t pid, int64_t tid)
{
	char link[64];

	return proc_link_read(root, pid, tid, "ns/net", link, sizeof(link)) > 0 ? link_number(link)
										: 0;
}

static int diag_open(void)
{
	const struct timeval limit = {.tv_sec = ANSWER_S};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return fd;
}

/* Opens a socket in a namespace. of: the namespace's descriptor, replaced by the socket's or
 * -errno. */
static void *diag_open_there(void *of)
{
	int *fd = of;

	*fd = setns(*fd, CLONE_NEWNET) ? -errno : diag_open();
	return NULL;
}

int net_namespace_diag_open(const char *root, int64_t pid, int64_t tid)
{
	char own[64] = "";
	pthread_t thread;
	int namespace, fd, err;

	if (readlink("/proc/thread-self/ns/net", own, sizeof(own) - 1) > 0 &&
	    link_number(own) == net_namespace_of(root, pid, tid))
		return diag_open();
	namespace = proc_file_open(root, pid, tid, "ns/net");
	if (namespace < 0)
		return namespace;
	fd = namespace;
	err = thread_begin(&thread, diag_open_there, &fd);
	if (!err)
		err = -pthread_join(thread, NULL);
	close(namespace);
	return err ? err : fd;
}
