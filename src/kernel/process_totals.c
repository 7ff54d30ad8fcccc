/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/process_totals.h"

#include <bcc/libbpf.h>
#include <errno.h>
#include <stddef.h>

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
	/* rows that come to an earlier bucket are met the next time; no key goes, so that no walk
	 * begins anew, but the map may be another process's to change */
	uint32_t left = PROCESS_KEYS_MAX;

	while (map >= 0 && left-- && !bpf_get_next_key(map, previous, &next)) {
		key = next;
		previous = &key;
		if (!bpf_lookup_elem(map, &key, &totals))
			visit(to, &key, &totals);
	}
}
