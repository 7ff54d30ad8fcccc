/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "waits/net_namespaces.h"
#include "waits/net_namespace.h"
#include "base/clock.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define READ_SHARE 20		       /* reading a table takes 1/READ_SHARE of the time */
#define READ_GAP_NS (20 * NS_PER_MS)   /* least time between two reads of a table */
#define REFUSED_STILL_NS NS_PER_SECOND /* time until a refusal is tried again */
#define PIECE_NS (3 * NS_PER_MS)       /* limit of reading in one scan */
#define FIRST_NS (10 * NS_PER_MS)      /* limit in the first scan, which may be the only one */

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
	namespaces->count = 0;
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

static struct net_namespace *namespace_of(const struct net_namespaces *namespaces, uint64_t number)
{
	for (size_t i = 0; i < namespaces->count; i++)
		if (namespaces->namespaces[i]->number == number)
			return namespaces->namespaces[i];
	return NULL;
}

const struct net_namespace *net_namespaces_find(const struct net_namespaces *namespaces,
						uint64_t number)
{
	return namespace_of(namespaces, number);
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
	struct net_namespace *namespace = namespace_of(namespaces, number);
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
