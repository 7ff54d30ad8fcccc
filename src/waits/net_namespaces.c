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

static void namespace_free(struct net_namespace *namespace)
{
	for (int group = 0; group < DIAG_GROUP_COUNT; group++) {
		if (!namespace->tables[group])
			continue;
		close(namespace->tables[group]->fd);
		diag_table_done(namespace->tables[group]);
		free(namespace->tables[group]);
	}
	if (namespace->single_fd >= 0)
		close(namespace->single_fd);
	free(namespace);
}

void net_namespaces_done(struct net_namespaces *namespaces)
{
	for (size_t i = 0; i < namespaces->count; i++)
		namespace_free(namespaces->namespaces[i]);
	*namespaces = (struct net_namespaces){.root = NULL};
}

void net_namespaces_sweep(struct net_namespaces *namespaces, int64_t now_ns, int64_t idle_ns)
{
	for (size_t i = 0; i < namespaces->count;) {
		struct net_namespace *namespace = namespaces->namespaces[i];

		if (now_ns - namespace->used_ns < idle_ns) {
			i++;
			continue;
		}
		namespace_free(namespace);
		namespaces->namespaces[i] = namespaces->namespaces[--namespaces->count];
	}
}

struct net_namespace *net_namespaces_find(const struct net_namespaces *namespaces, uint64_t number)
{
	for (size_t i = 0; i < namespaces->count; i++)
		if (namespaces->namespaces[i]->number == number)
			return namespaces->namespaces[i];
	return NULL;
}

static struct net_namespace *namespace_add(struct net_namespaces *namespaces, uint64_t number,
					   int64_t now_ns)
{
	struct net_namespace *namespace;

	if (namespaces->count == NET_NAMESPACES_MAX)
		return NULL;
	namespace = memory_get(sizeof(*namespace));
	*namespace = (struct net_namespace){.number = number, .used_ns = now_ns, .single_fd = -1};
	namespaces->namespaces[namespaces->count++] = namespace;
	return namespace;
}

static struct diag_table *table_open(struct net_namespaces *namespaces,
				     struct net_namespace *namespace, enum diag_group group,
				     int64_t pid, int64_t tid)
{
	int fd = net_namespace_diag_open(namespaces->root, pid, tid);

	if (fd < 0) {
		/* the thread may just have ended */
		if (fd != -ENOENT && fd != -ESRCH)
			namespaces->err = fd;
		return NULL;
	}
	if (group == DIAG_TCP)
	namespace->single_fd = net_namespace_diag_open(namespaces->root, pid, tid);
	namespace->tables[group] = memory_get(sizeof(*namespace->tables[group]));
	namespace->tables[group]->group = group;
	namespace->tables[group]->fd = fd;
	return namespace->tables[group];
}

struct diag_table *net_namespaces_table(struct net_namespaces *namespaces, uint64_t number,
					enum diag_group group, int64_t pid, int64_t tid,
					int64_t now_ns)
{
	struct net_namespace *namespace = net_namespaces_find(namespaces, number);
	struct diag_table *table = namespace ? namespace->tables[group] : NULL;

	if (namespace)
	namespace->used_ns = now_ns;
	if (table || !number ||
	    (namespaces->refused_ns && now_ns - namespaces->refused_ns < REFUSED_STILL_NS))
		return table;
	if (!namespace)
	namespace = namespace_add(namespaces, number, now_ns);
	if (!namespace)
		return NULL;
	table = table_open(namespaces, namespace, group, pid, tid);
	if (!table)
		namespaces->refused_ns = now_ns;
	return table;
}

int64_t net_namespaces_left(struct net_namespaces *namespaces, int64_t now_ns)
{
	if (namespaces->scan_ns != now_ns) {
		namespaces->left_ns = namespaces->scan_ns ? PIECE_NS : FIRST_NS;
		namespaces->scan_ns = now_ns;
	}
	return namespaces->left_ns;
}

void net_namespaces_spent(struct net_namespaces *namespaces, int64_t since_ns)
{
	namespaces->left_ns -= clock_monotonic_ns() - since_ns;
}

bool net_namespaces_refresh(struct net_namespaces *namespaces, struct diag_table *table,
			    int64_t as_of_ns, int64_t now_ns)
{
	int64_t start_ns, gap_ns = table->spent_ns * READ_SHARE;

	if (table->now_ns >= as_of_ns)
		return true;
	if (gap_ns < READ_GAP_NS)
		gap_ns = READ_GAP_NS;
	if (table->err)
		gap_ns = REFUSED_STILL_NS;
	if (net_namespaces_left(namespaces, now_ns) <= 0 ||
	    (!table->next_ns && table->begun_ns && now_ns - table->begun_ns < gap_ns))
		return false;
	start_ns = clock_monotonic_ns();
	diag_table_read(table, now_ns, start_ns + namespaces->left_ns);
	net_namespaces_spent(namespaces, start_ns);
	if (table->err)
		namespaces->err = table->err;
	return table->now_ns >= as_of_ns;
}
