/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/process_totals.h"
#include "base/clock.h"

#include <bcc/libbpf.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

/* Time in which all programs of an event run: they follow each other at once; nothing but an
 * interrupt can come between. */
#define EVENT_NS (20 * NS_PER_US)
#define SETTLE_TRIES 1000 /* readings; one in three succeeds with 50 000 events a second */

int process_totals_begin(int map)
{
	struct process_key others = {.uid = PROCESS_OTHERS_UID};
	struct process_totals none = {.forks = 0};

	return map < 0 || !bpf_update_elem(map, &others, &none, BPF_ANY) ? 0 : -errno;
}

void process_totals_visit(int map,
			  void (*visit)(void *to, const struct process_key *key,
					const struct process_totals *totals),
			  void *to)
{
	struct process_key key, *previous = NULL, next;
	struct process_totals totals;
	/* rows that are added to an earlier bucket are visited the next time; no key is deleted, so
	 * that no walk begins anew, but another process may be able to change the map */
	uint32_t left = PROCESS_KEYS_MAX;

	while (map >= 0 && left-- && !bpf_get_next_key(map, previous, &next)) {
		key = next;
		previous = &key;
		if (!bpf_lookup_elem(map, &key, &totals))
			visit(to, &key, &totals);
	}
}

struct both_totals {
	struct process_totals first, second;
};

static void both_read(int map, int second, const struct process_key *key, struct both_totals *both)
{
	struct process_key of = *key; /* libbcc's call takes no const */

	*both = (struct both_totals){0};
	bpf_lookup_elem(map, &of, &both->first);
	bpf_lookup_elem(second, &of, &both->second);
}

/* Reads both after the same events: neither has changed for longer than an event's programs
 * take. */
static void both_settle(int map, int second, const struct process_key *key,
			struct both_totals *both)
{
	struct both_totals before;
	int tries = SETTLE_TRIES;

	both_read(map, second, key, both);
	do {
		int64_t from_ns = clock_monotonic_ns();

		before = *both;
		while (clock_monotonic_ns() - from_ns < EVENT_NS)
			;
		both_read(map, second, key, both);
	} while (--tries && memcmp(&before, both, sizeof(before)) != 0);
}

struct both_visit {
	int map, second;
	void (*visit)(void *to, const struct process_key *key, const struct process_totals *totals,
		      const struct process_totals *seconds);
	void *to;
};

static void row_visit(void *to, const struct process_key *key, const struct process_totals *totals)
{
	const struct both_visit *visit = to;
	struct both_totals both;

	(void)totals;
	both_settle(visit->map, visit->second, key, &both);
	visit->visit(visit->to, key, &both.first, &both.second);
}

void process_totals_visit_both(int map, int second,
			       void (*visit)(void *to, const struct process_key *key,
					     const struct process_totals *totals,
					     const struct process_totals *seconds),
			       void *to)
{
	struct both_visit both = {map, second, visit, to};

	process_totals_visit(map, row_visit, &both);
}
