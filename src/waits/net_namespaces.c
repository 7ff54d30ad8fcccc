/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "waits/net_namespaces.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "proc/proc.h"

#include <errno.h>
#include <linux/netlink.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define READ_SHARE 20		       /* reading a table takes 1/READ_SHARE of the time */
#define READ_GAP_NS (20 * NS_PER_MS)   /* least time between two reads of a table */
#define REFUSED_STILL_NS NS_PER_SECOND /* time until a refusal is tried again */
#define PIECE_NS (3 * NS_PER_MS)       /* limit of reading in one scan */
#define FIRST_NS (10 * NS_PER_MS)      /* limit in the first scan, which may be the only one */
#define LINK_PREFIX "net:["
#define ANSWER_S 1 /* the kernel answers at once, or not at all */

static struct net_namespace *namespaces[NET_NAMESPACES_MAX];
static size_t namespace_count;
static int64_t scan_ns, left_ns; /* the present scan, and the time that reading has left in it */
static int64_t refused_ns;	 /* time when a namespace could not be entered */
static int refusal;		 /* see net_namespaces_error() */

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

/* Opens a NETLINK_SOCK_DIAG socket in that namespace, which the caller closes; or -errno. A socket
 * stays in the namespace that it was made in. A thread is started to enter the namespace, which
 * needs CAP_SYS_ADMIN; the caller's own namespace needs neither. */
static int net_namespace_diag_open(const char *root, int64_t pid, int64_t tid)
{
	char own[64] = "";
	pthread_t thread;
	int net, fd, err;

	if (readlink("/proc/thread-self/ns/net", own, sizeof(own) - 1) > 0 &&
	    link_number(own) == net_namespace_of(root, pid, tid))
		return diag_open();
	net = proc_file_open(root, pid, tid, "ns/net");
	if (net < 0)
		return net;
	fd = net;
	err = thread_begin(&thread, diag_open_there, &fd);
	if (!err)
		err = -pthread_join(thread, NULL);
	close(net);
	return err ? err : fd;
}

static void namespace_free(struct net_namespace *net)
{
	for (int group = 0; group < DIAG_GROUP_COUNT; group++) {
		if (!net->tables[group])
			continue;
		close(net->tables[group]->fd);
		diag_table_done(net->tables[group]);
		free(net->tables[group]);
	}
	if (net->single_fd >= 0)
		close(net->single_fd);
	free(net);
}

void net_namespaces_done(void)
{
	for (size_t i = 0; i < namespace_count; i++)
		namespace_free(namespaces[i]);
	namespace_count = 0;
	scan_ns = left_ns = refused_ns = 0;
	refusal = 0;
}

void net_namespaces_sweep(int64_t now_ns, int64_t idle_ns)
{
	for (size_t i = 0; i < namespace_count;) {
		struct net_namespace *net = namespaces[i];

		if (now_ns - net->used_ns < idle_ns) {
			i++;
			continue;
		}
		namespace_free(net);
		namespaces[i] = namespaces[--namespace_count];
	}
}

struct net_namespace *net_namespaces_find(uint64_t number)
{
	for (size_t i = 0; i < namespace_count; i++)
		if (namespaces[i]->number == number)
			return namespaces[i];
	return NULL;
}

struct net_namespace *net_namespaces_at(size_t index)
{
	return index < namespace_count ? namespaces[index] : NULL;
}

static struct net_namespace *namespace_add(uint64_t number, int64_t now_ns)
{
	struct net_namespace *net;

	if (namespace_count == NET_NAMESPACES_MAX)
		return NULL;
	net = memory_get(sizeof(*net));
	*net = (struct net_namespace){.number = number, .used_ns = now_ns, .single_fd = -1};
	namespaces[namespace_count++] = net;
	return net;
}

static struct diag_table *table_open(const char *root, struct net_namespace *net,
				     enum diag_group group, int64_t pid, int64_t tid)
{
	int fd = net_namespace_diag_open(root, pid, tid);

	if (fd < 0) {
		/* the thread may just have ended */
		if (fd != -ENOENT && fd != -ESRCH)
			refusal = fd;
		return NULL;
	}
	if (group == DIAG_TCP)
		net->single_fd = net_namespace_diag_open(root, pid, tid);
	net->tables[group] = memory_get(sizeof(*net->tables[group]));
	net->tables[group]->group = group;
	net->tables[group]->fd = fd;
	return net->tables[group];
}

struct diag_table *net_namespaces_table(const char *root, uint64_t number, enum diag_group group,
					int64_t pid, int64_t tid, int64_t now_ns)
{
	struct net_namespace *net = net_namespaces_find(number);
	struct diag_table *table = net ? net->tables[group] : NULL;

	if (net)
		net->used_ns = now_ns;
	if (table || !number || (refused_ns && now_ns - refused_ns < REFUSED_STILL_NS))
		return table;
	if (!net)
		net = namespace_add(number, now_ns);
	if (!net)
		return NULL;
	table = table_open(root, net, group, pid, tid);
	if (!table)
		refused_ns = now_ns;
	return table;
}

int64_t net_namespaces_left(int64_t now_ns)
{
	if (scan_ns != now_ns) {
		left_ns = scan_ns ? PIECE_NS : FIRST_NS;
		scan_ns = now_ns;
	}
	return left_ns;
}

void net_namespaces_spent(int64_t since_ns)
{
	left_ns -= clock_monotonic_ns() - since_ns;
}

bool net_namespaces_refresh(struct diag_table *table, int64_t as_of_ns, int64_t now_ns)
{
	int64_t start_ns, gap_ns = table->spent_ns * READ_SHARE;

	if (table->now_ns >= as_of_ns)
		return true;
	if (gap_ns < READ_GAP_NS)
		gap_ns = READ_GAP_NS;
	if (table->err)
		gap_ns = REFUSED_STILL_NS;
	if (net_namespaces_left(now_ns) <= 0 ||
	    (!table->next_ns && table->begun_ns && now_ns - table->begun_ns < gap_ns))
		return false;
	start_ns = clock_monotonic_ns();
	diag_table_read(table, now_ns, start_ns + left_ns);
	net_namespaces_spent(start_ns);
	if (table->err)
		refusal = table->err;
	return table->now_ns >= as_of_ns;
}

int net_namespaces_error(void)
{
	return refusal;
}
