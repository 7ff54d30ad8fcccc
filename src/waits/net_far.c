/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "waits/net_far.h"
#include "keeper/avoid.h"
#include "base/clock.h"
#include "proc/proc.h"

#include <string.h>

#define LIST_STILL_NS (5 * NS_PER_SECOND)
#define LIST_SHARE 200 /* the walk over processes takes 1/LIST_SHARE of the time */
#define LOOKS_MAX 64   /* processes between two reads of the clock */

/* --- list of namespaces */

/* Network namespaces that processes are in, and one process of each. */
struct net_list {
	uint64_t numbers[NET_NAMESPACES_MAX];
	int64_t pids[NET_NAMESPACES_MAX];
	size_t count;
	bool cut; /* the list is incomplete: NET_NAMESPACES_MAX was reached */
};

static struct {
	struct net_list now, next; /* the last complete list, and the one being made */
	int64_t now_ns;		   /* time when the list `now` was begun; 0: there is none */
	int64_t begun_ns, spent_ns;
	DIR *walk; /* NULL: no list is being made */
} far;

static void list_add(struct net_list *list, uint64_t number, int64_t pid)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->numbers[i] == number)
			return;
	if (!number)
		return;
	if (list->count == NET_NAMESPACES_MAX) {
		list->cut = true;
		return;
	}
	list->numbers[list->count] = number;
	list->pids[list->count++] = pid;
}

/* Reads the namespaces of some processes. True: the list is complete. */
static bool list_read(const char *root)
{
	for (int left = LOOKS_MAX; left;) {
		int64_t pid = proc_dir_next(far.walk);

		if (pid < 0)
			return true;
		if (avoids_process(pid))
			continue;
		list_add(&far.next, net_namespace_of(root, pid, pid), pid);
		left--;
	}
	return false;
}

static void list_begin(const char *root, int64_t now_ns)
{
	int64_t gap_ns = far.spent_ns * LIST_SHARE;

	if (gap_ns < LIST_STILL_NS)
		gap_ns = LIST_STILL_NS;
	if (far.begun_ns && now_ns - far.begun_ns < gap_ns)
		return;
	far.walk = opendir(root);
	far.next.count = 0;
	far.next.cut = false;
	far.begun_ns = now_ns;
	far.spent_ns = 0;
}

static void list_refresh(const char *root, int64_t now_ns)
{
	bool complete = false;
	int64_t start_ns;

	if (!far.walk)
		list_begin(root, now_ns);
	if (!far.walk || net_namespaces_left(now_ns) <= 0)
		return;
	start_ns = clock_monotonic_ns();
	while (!complete && clock_monotonic_ns() - start_ns < net_namespaces_left(now_ns))
		complete = list_read(root);
	far.spent_ns += clock_monotonic_ns() - start_ns;
	net_namespaces_spent(start_ns);
	if (!complete)
		return;
	closedir(far.walk);
	far.walk = NULL;
	far.now = far.next;
	far.now_ns = far.begun_ns;
}

void net_far_done(void)
{
	if (far.walk)
		closedir(far.walk);
	memset(&far, 0, sizeof(far));
}

/* --- the other end */

static bool is_loopback(const struct diag_address *address)
{
	static const uint8_t one[16] = {[15] = 1}, mapped[12] = {[10] = 0xff, [11] = 0xff};

	return !memcmp(address->bytes, one, sizeof(one)) ||
	       (!memcmp(address->bytes, mapped, sizeof(mapped)) && address->bytes[12] == 127);
}

/* Counts of a connection's ends in the other namespaces. */
struct far_count {
	uint32_t peer;
	size_t mirrored, same;
	bool unknown; /* a namespace could not be read completely */
};

static void table_count(const struct diag_table *table, const struct diag_record *own,
			struct far_count *count)
{
	const struct diag_record *other = diag_record_opposite(table, own);

	if (other) {
		count->mirrored++;
		count->peer = other->inode;
	}
	count->same += diag_record_same(table, own) != NULL;
	count->unknown |= table->now.count >= SOCKETS_MAX;
}

/* Counts in the tables of all other namespaces. False: a table must still be read. */
static bool namespaces_count(const char *root, uint64_t number, const struct diag_record *own,
			     int64_t as_of_ns, int64_t now_ns, struct far_count *count)
{
	for (size_t i = 0; i < far.now.count; i++) {
		struct diag_table *table;
		int64_t start_ns = clock_monotonic_ns(), pid = far.now.pids[i];

		if (far.now.numbers[i] == number)
			continue;
		if (net_namespaces_left(now_ns) <= 0)
			return false;
		table = net_namespaces_table(root, far.now.numbers[i], DIAG_TCP, pid, pid, now_ns);
		net_namespaces_spent(start_ns); /* for opening it */
		if (!table || table->err) {
			count->unknown = true;
			return true;
		}
		if (!net_namespaces_refresh(table, as_of_ns, now_ns)) {
			count->unknown = table->err != 0;
			return table->err != 0;
		}
		table_count(table, own, count);
	}
	return true;
}

bool net_far_find(const char *root, uint64_t number, const struct diag_record *own,
		  int64_t requested_ns, int64_t now_ns, struct far_end *end)
{
	struct far_count count = {0};
	int64_t as_of_ns;

	if (is_loopback(&own->remote) || is_loopback(&own->local))
		return true;
	list_refresh(root, now_ns);
	if (!far.now_ns)
		return !far.walk;
	if (end->listed_ns == far.now_ns)
		return true;
	as_of_ns = far.now_ns > requested_ns ? far.now_ns : requested_ns;
	if (!far.now.cut && !namespaces_count(root, number, own, as_of_ns, now_ns, &count))
		return end->listed_ns != 0;
	end->listed_ns = far.now_ns;
	/* an end that was found before stays valid: addresses of a connection do not change */
	if (far.now.cut || count.unknown)
		return true;
	end->peer = count.mirrored == 1 && !count.same ? count.peer : 0;
	return true;
}
