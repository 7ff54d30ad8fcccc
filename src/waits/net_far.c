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
static bool list_read(struct net_far *far, const char *root)
{
	for (int left = LOOKS_MAX; left;) {
		int64_t pid = proc_dir_next(far->walk);

		if (pid < 0)
			return true;
		if (avoids_process(pid))
			continue;
		list_add(&far->next, net_namespace_of(root, pid, pid), pid);
		left--;
	}
	return false;
}

static void list_begin(struct net_far *far, const char *root, int64_t now_ns)
{
	int64_t gap_ns = far->spent_ns * LIST_SHARE;

	if (gap_ns < LIST_STILL_NS)
		gap_ns = LIST_STILL_NS;
	if (far->begun_ns && now_ns - far->begun_ns < gap_ns)
		return;
	far->walk = opendir(root);
	far->next.count = 0;
	far->next.cut = false;
	far->begun_ns = now_ns;
	far->spent_ns = 0;
}

static void list_refresh(struct net_far *far, struct net_namespaces *namespaces, int64_t now_ns)
{
	bool complete = false;
	int64_t start_ns;

	if (!far->walk)
		list_begin(far, namespaces->root, now_ns);
	if (!far->walk || net_namespaces_left(namespaces, now_ns) <= 0)
		return;
	start_ns = clock_monotonic_ns();
	while (!complete && clock_monotonic_ns() - start_ns < namespaces->left_ns)
		complete = list_read(far, namespaces->root);
	far->spent_ns += clock_monotonic_ns() - start_ns;
	net_namespaces_spent(namespaces, start_ns);
	if (!complete)
		return;
	closedir(far->walk);
	far->walk = NULL;
	far->now = far->next;
	far->now_ns = far->begun_ns;
}

void net_far_done(struct net_far *far)
{
	if (far->walk)
		closedir(far->walk);
	*far = (struct net_far){0};
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
static bool namespaces_count(const struct net_far *far, struct net_namespaces *namespaces,
			     uint64_t number, const struct diag_record *own, int64_t as_of_ns,
			     int64_t now_ns, struct far_count *count)
{
	for (size_t i = 0; i < far->now.count; i++) {
		struct diag_table *table;
		int64_t start_ns = clock_monotonic_ns(), pid = far->now.pids[i];

		if (far->now.numbers[i] == number)
			continue;
		if (net_namespaces_left(namespaces, now_ns) <= 0)
			return false;
		table = net_namespaces_table(namespaces, far->now.numbers[i], DIAG_TCP, pid, pid,
					     now_ns);
		net_namespaces_spent(namespaces, start_ns); /* for opening it */
		if (!table || table->err) {
			count->unknown = true;
			return true;
		}
		if (!net_namespaces_refresh(namespaces, table, as_of_ns, now_ns)) {
			count->unknown = table->err != 0;
			return table->err != 0;
		}
		table_count(table, own, count);
	}
	return true;
}

bool net_far_find(struct net_far *far, struct net_namespaces *namespaces, uint64_t number,
		  const struct diag_record *own, int64_t requested_ns, int64_t now_ns,
		  struct far_end *end)
{
	struct far_count count = {0};
	int64_t as_of_ns;

	if (is_loopback(&own->remote) || is_loopback(&own->local))
		return true;
	list_refresh(far, namespaces, now_ns);
	if (!far->now_ns)
		return !far->walk;
	if (end->listed_ns == far->now_ns)
		return true;
	as_of_ns = far->now_ns > requested_ns ? far->now_ns : requested_ns;
	if (!far->now.cut &&
	    !namespaces_count(far, namespaces, number, own, as_of_ns, now_ns, &count))
		return end->listed_ns != 0;
	end->listed_ns = far->now_ns;
	/* an end that was found before stays valid: addresses of a connection do not change */
	if (far->now.cut || count.unknown)
		return true;
	end->peer = count.mirrored == 1 && !count.same ? count.peer : 0;
	return true;
}
