/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "waits/net_spaces.h"
#include "waits/net_space.h"
#include "base/clock.h"
#include "base/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define READ_SHARE 20		       /* tables are read for one part in so many of the time */
#define READ_GAP_NS (20 * NS_PER_MS)   /* time between two reads of a table, at least */
#define REFUSED_STILL_NS NS_PER_SECOND /* time until what was refused is tried again */
#define PIECE_NS (3 * NS_PER_MS)       /* time for reading in one scan */
#define FIRST_NS (10 * NS_PER_MS) /* time for reading in the first scan: it may be the only one */

static void space_free(struct net_space *space)
{
	for (int group = 0; group < DIAG_GROUP_COUNT; group++) {
		if (!space->tables[group])
			continue;
		close(space->tables[group]->fd);
		diag_table_done(space->tables[group]);
		free(space->tables[group]);
	}
	if (space->single_fd >= 0)
		close(space->single_fd);
	free(space);
}

void net_spaces_done(struct net_spaces *spaces)
{
	for (size_t i = 0; i < spaces->count; i++)
		space_free(spaces->spaces[i]);
	spaces->count = 0;
}

void net_spaces_sweep(struct net_spaces *spaces, int64_t now_ns, int64_t idle_ns)
{
	for (size_t i = 0; i < spaces->count;) {
		struct net_space *space = spaces->spaces[i];

		if (now_ns - space->used_ns < idle_ns) {
			i++;
			continue;
		}
		space_free(space);
		spaces->spaces[i] = spaces->spaces[--spaces->count];
	}
}

static struct net_space *space_of(const struct net_spaces *spaces, uint64_t number)
{
	for (size_t i = 0; i < spaces->count; i++)
		if (spaces->spaces[i]->number == number)
			return spaces->spaces[i];
	return NULL;
}

const struct net_space *net_spaces_find(const struct net_spaces *spaces, uint64_t number)
{
	return space_of(spaces, number);
}

static struct net_space *space_add(struct net_spaces *spaces, uint64_t number, int64_t now_ns)
{
	struct net_space *space;

	if (spaces->count == NET_SPACES_MAX)
		return NULL;
	space = memory_get(sizeof(*space));
	*space = (struct net_space){.number = number, .used_ns = now_ns, .single_fd = -1};
	spaces->spaces[spaces->count++] = space;
	return space;
}

static struct diag_table *table_open(struct net_spaces *spaces, struct net_space *space,
				     enum diag_group group, int64_t pid, int64_t tid)
{
	int fd = net_space_diag_open(spaces->root, pid, tid);

	if (fd < 0) {
		/* the thread may just have ended */
		if (fd != -ENOENT && fd != -ESRCH)
			spaces->err = fd;
		return NULL;
	}
	if (group == DIAG_TCP)
		space->single_fd = net_space_diag_open(spaces->root, pid, tid);
	space->tables[group] = memory_get(sizeof(*space->tables[group]));
	space->tables[group]->group = group;
	space->tables[group]->fd = fd;
	return space->tables[group];
}

struct diag_table *net_spaces_table(struct net_spaces *spaces, uint64_t number,
				    enum diag_group group, int64_t pid, int64_t tid, int64_t now_ns)
{
	struct net_space *space = space_of(spaces, number);
	struct diag_table *table = space ? space->tables[group] : NULL;

	if (space)
		space->used_ns = now_ns;
	if (table || !number ||
	    (spaces->refused_ns && now_ns - spaces->refused_ns < REFUSED_STILL_NS))
		return table;
	if (!space)
		space = space_add(spaces, number, now_ns);
	if (!space)
		return NULL;
	table = table_open(spaces, space, group, pid, tid);
	if (!table)
		spaces->refused_ns = now_ns;
	return table;
}

int64_t net_spaces_left(struct net_spaces *spaces, int64_t now_ns)
{
	if (spaces->scan_ns != now_ns) {
		spaces->left_ns = spaces->scan_ns ? PIECE_NS : FIRST_NS;
		spaces->scan_ns = now_ns;
	}
	return spaces->left_ns;
}

void net_spaces_spent(struct net_spaces *spaces, int64_t since_ns)
{
	spaces->left_ns -= clock_monotonic_ns() - since_ns;
}

bool net_spaces_refresh(struct net_spaces *spaces, struct diag_table *table, int64_t as_of_ns,
			int64_t now_ns)
{
	int64_t start_ns, gap_ns = table->spent_ns * READ_SHARE;

	if (table->now_ns >= as_of_ns)
		return true;
	if (gap_ns < READ_GAP_NS)
		gap_ns = READ_GAP_NS;
	if (table->err)
		gap_ns = REFUSED_STILL_NS;
	if (net_spaces_left(spaces, now_ns) <= 0 ||
	    (!table->next_ns && table->begun_ns && now_ns - table->begun_ns < gap_ns))
		return false;
	start_ns = clock_monotonic_ns();
	diag_table_read(table, now_ns, start_ns + spaces->left_ns);
	net_spaces_spent(spaces, start_ns);
	if (table->err)
		spaces->err = table->err;
	return table->now_ns >= as_of_ns;
}
