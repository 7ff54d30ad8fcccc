/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "waits/unread.h"
#include "base/clock.h"
#include "proc/proc.h"
#include "waits/net_namespaces.h"
#include "waits/sock_diag.h"
#include "waits/tcp_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_NS (20 * NS_PER_MS)	   /* limit of reading tables */
#define READ_SHARE 100			   /* reading takes 1/READ_SHARE of the time */
#define SEARCH_NS (100 * NS_PER_MS)	   /* limit of the search for processes */
#define SEARCH_SHARE 16			   /* and its share of the time */
#define TABLE_AGE_NS NS_PER_SECOND	   /* at which a table is read again */
#define TABLE_STALE_NS (3 * NS_PER_SECOND) /* of which nothing is told */
#define QUESTIONS 64			   /* connections of a namespace that are asked about */
#define IDLE_NS (60 * NS_PER_SECOND)

/* The row of a port; NULL: there are too many. */
static struct unread_port *port_put(struct unread *unread, uint64_t net, uint16_t port)
{
	struct unread_port *row = unread->ports;

	for (; row < unread->ports + unread->count; row++)
		if (row->net == net && row->port == port)
			return row;
	if (unread->count == UNREAD_PORTS_MAX)
		return NULL;
	unread->count++;
	*row = (struct unread_port){.net = net, .port = port};
	return row;
}

/* Counts a connection that still waits, as the answer says; without an answer, because too many
 * wait, as the table says. */
static void connection_count(struct unread_port *row, const struct diag_record *record,
			     const struct tcp_answer *answer)
{
	int64_t waited_ms = answer && answer->info_bytes ? answer->info.tcpi_last_data_recv : 0;
	bool accepted = answer ? answer->message.idiag_inode : record->inode;
	bool late = waited_ms >= UNREAD_LATE_MS;

	if (accepted && waited_ms >= UNREAD_ABANDONED_MS)
		return;
	row->requests += (answer ? answer->message.idiag_rqueue : record->queued) > 0;
	row->late += late;
	row->late_unaccepted += late && !accepted;
	if (waited_ms > row->oldest_ms)
		row->oldest_ms = waited_ms;
	if (!accepted || (row->connection && waited_ms <= row->connection_ms))
		return;
	row->connection = answer ? answer->message.idiag_inode : record->inode;
	row->connection_ms = waited_ms;
}

/* Takes the connections of a table that are to ports on which somebody listens. */
static void connections_take(struct unread *unread, const struct net_namespace *net,
			     const struct diag_table *table)
{
	size_t asked = 0;

	for (size_t i = 0; i < table->now.waiting_count; i++) {
		const struct diag_record *record = &table->now.waiting[i];
		struct tcp_answer answer;
		struct unread_port *row;
		bool ask;

		if (!diag_port_listens(table, record->local.port))
			continue;
		ask = net->single_fd >= 0 && asked < QUESTIONS;
		asked += ask;
		/* it may have been read, accepted or closed by now */
		if (ask && (!tcp_ask(net->single_fd, record, &answer) ||
			    answer.message.idiag_state != STATE_ESTABLISHED ||
			    (answer.message.idiag_inode && !answer.message.idiag_rqueue)))
			continue;
		row = port_put(unread, net->number, record->local.port);
		if (row)
			connection_count(row, record, ask ? &answer : NULL);
	}
}

/* Takes the queues of a table's listeners. */
static void queues_take(struct unread *unread, const struct net_namespace *net,
			const struct diag_table *table)
{
	for (size_t i = 0; i < unread->count; i++) {
		struct unread_port *row = &unread->ports[i];
		uint32_t longest = 0;

		if (row->net != net->number)
			continue;
		for (size_t j = 0; j < table->now.count; j++) {
			const struct diag_record *record = &table->now.rows[j];

			if (record->state != STATE_LISTEN || record->local.port != row->port)
				continue;
			row->unaccepted += record->queued;
			if (record->queued <= longest)
				continue;
			longest = record->queued;
			row->limit = record->backlog;
			row->listener = record->inode;
		}
	}
}

static int ports_compare(const void *a, const void *b)
{
	const struct unread_port *x = a, *y = b;

	return (x->late < y->late) - (x->late > y->late);
}

/* Finds the process that should read: the one that has the connection, or else the listener. */
static void owner_find(struct unread *unread, struct unread_port *row, const char *root,
		       int64_t now_ns)
{
	uint32_t count = 1, inode = row->connection ? row->connection : row->listener;
	struct proc_stat stat;
	bool pending = false;
	char link[32];
	int64_t pid;

	snprintf(link, sizeof(link), "socket:[%u]", inode);
	pid = inode ? holders_find(&unread->holders, link, HOLDER_ANY, 0, now_ns, &count, &pending)
		    : 0;
	if (!pid || pending || proc_stat_read(root, 0, pid, &stat))
		return;
	snprintf(row->comm, sizeof(row->comm), "%.15s", stat.comm);
	if (count > 1)
		return;
	row->pid = pid;
	row->threads = proc_thread_count(root, pid);
}

/* Finds processes, and leaves out the ports where nothing is late. */
static void ports_conclude(struct unread *unread, const char *root, int64_t now_ns)
{
	int64_t search_ns = (now_ns - unread->searched_ns) / SEARCH_SHARE;

	qsort(unread->ports, unread->count, sizeof(unread->ports[0]), ports_compare);
	while (unread->count && !unread->ports[unread->count - 1].late)
		unread->count--;
	if (!unread->count)
		return;
	if (!unread->searches)
		holders_init(&unread->holders, root);
	unread->searches = true;
	holders_give_time(&unread->holders, now_ns, search_ns < SEARCH_NS ? search_ns : SEARCH_NS);
	unread->searched_ns = now_ns;
	for (size_t i = 0; i < unread->count; i++)
		owner_find(unread, &unread->ports[i], root, now_ns);
	holders_sweep(&unread->holders, now_ns, IDLE_NS);
}

void unread_read(struct unread *unread, const char *root, int64_t now_ns)
{
	int64_t start_ns = clock_monotonic_ns(), spent_ns;
	int64_t self = getpid();
	struct net_namespace *net;

	if (now_ns < unread->next_ns)
		return;
	unread->count = 0;
	/* opens tsnap's own, if no thread has needed it */
	net_namespaces_table(root, net_namespace_of(root, self, self), DIAG_TCP, self, self,
			     now_ns);
	for (size_t i = 0; (net = net_namespaces_at(i)); i++) {
		struct diag_table *table = net->tables[DIAG_TCP];

		if (!table)
			continue;
		if (now_ns - table->now_ns >= TABLE_AGE_NS)
			diag_table_read(table, now_ns, start_ns + READ_NS);
		if (!table->now_ns || now_ns - table->now_ns > TABLE_STALE_NS)
			continue;
		connections_take(unread, net, table);
		queues_take(unread, net, table);
	}
	spent_ns = clock_monotonic_ns() - start_ns;
	unread->next_ns = now_ns + (spent_ns * READ_SHARE > NS_PER_SECOND ? spent_ns * READ_SHARE
									  : NS_PER_SECOND);
	ports_conclude(unread, root, now_ns);
}

void unread_done(struct unread *unread)
{
	if (unread->searches)
		holders_done(&unread->holders);
	*unread = (struct unread){0};
}
