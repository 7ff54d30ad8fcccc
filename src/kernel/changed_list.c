/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/changed_list.h"
#include "base/memory.h"

#include <bcc/libbpf.h>
#include <stdlib.h>
#include <string.h>

void changed_reader_init(struct changed_reader *reader, int scan_map, int changed_map, int cpus)
{
	_Static_assert(sizeof(struct changed_list) % 8 == 0, "per-CPU values are rounded up to 8");
	*reader = (struct changed_reader){scan_map, changed_map, 0, cpus, NULL, NULL};
	reader->lists = memory_get((size_t)cpus * sizeof(*reader->lists));
	reader->taken = memory_get((size_t)cpus * sizeof(*reader->taken));
}

void changed_reader_done(struct changed_reader *reader)
{
	free(reader->lists);
	free(reader->taken);
	*reader = (struct changed_reader){.scan_map = -1, .changed_map = -1};
}

/* Visits what the lists of that scan hold beyond what was taken. False if one overflowed or can't
 * be read. */
static bool half_take(struct changed_reader *reader, uint32_t scan,
		      void (*visit)(void *to, uint32_t tid), void *to)
{
	uint32_t half = scan & 1;
	bool whole = true;

	if (bpf_lookup_elem(reader->changed_map, &half, reader->lists))
		return false;
	for (int cpu = 0; cpu < reader->cpus; cpu++) {
		const struct changed_list *list = &reader->lists[cpu];
		uint32_t count = list->count;

		if (list->scan != scan)
			continue; /* nobody was listed on this CPU */
		if (count > CHANGED_MAX) {
			whole = false;
			count = CHANGED_MAX;
		}
		for (uint32_t i = reader->taken[cpu]; i < count; i++)
			visit(to, list->tids[i]);
		reader->taken[cpu] = count;
	}
	return whole;
}

bool changed_reader_take(struct changed_reader *reader, void (*visit)(void *to, uint32_t tid),
			 void *to)
{
	uint32_t zero = 0, listed = reader->scan, next = listed + 1;
	bool whole = true;

	if (reader->scan_map < 0 || reader->changed_map < 0)
		return false;
	/* A writer that had the old number when it was counted up may have come after it was read:
	 * before the half is used again, see what was added. */
	if (listed)
		whole = half_take(reader, listed - 1, visit, to);
	memset(reader->taken, 0, (size_t)reader->cpus * sizeof(*reader->taken));
	if (bpf_update_elem(reader->scan_map, &zero, &next, BPF_ANY))
		return false;
	reader->scan = next;
	return half_take(reader, listed, visit, to) && whole;
}
