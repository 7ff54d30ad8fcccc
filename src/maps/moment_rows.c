/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/moment_rows.h"
#include "base/clock.h"
#include "kernel/bpf_call.h"

#include <sys/mman.h>

_Static_assert(sizeof(struct moment_ring) % 8 == 0, "values of an array are rounded up to 8");

static size_t rings_bytes(const struct moment_rows *rows)
{
	return (size_t)rows->cpus * sizeof(*rows->rings);
}

int moment_rows_init(struct moment_rows *rows, int sampling_map, int moment_map, int cpus)
{
	int err;

	*rows = (struct moment_rows){.cpus = cpus};
	if (sampling_map < 0 || moment_map < 0)
		return 0;
	err = bpf_call_map_mapped(sampling_map, sizeof(*rows->sampling), (void **)&rows->sampling);
	return err ? err
		   : bpf_call_map_mapped(moment_map, rings_bytes(rows), (void **)&rows->rings);
}

void moment_rows_done(struct moment_rows *rows)
{
	if (rows->rings) {
		__atomic_store_n(&rows->sampling->moment_ns, 0, __ATOMIC_RELAXED);
		munmap(rows->rings, rings_bytes(rows));
	}
	if (rows->sampling)
		munmap(rows->sampling, sizeof(*rows->sampling));
	*rows = (struct moment_rows){0};
}

void moment_begin(struct moment_rows *rows, int64_t moment_ns)
{
	if (!rows->rings)
		return;
	for (int cpu = 0; cpu < rows->cpus; cpu++)
		__atomic_store_n(&rows->rings[cpu].count, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&rows->sampling->moment_ns, (__u64)moment_ns, __ATOMIC_RELEASE);
}

bool moment_end(struct moment_rows *rows, struct index *found)
{
	int64_t since_ns;

	index_empty(found);
	if (!rows->rings)
		return false;
	since_ns = clock_monotonic_ns() - (int64_t)rows->sampling->moment_ns;
	__atomic_store_n(&rows->sampling->moment_ns, 0, __ATOMIC_SEQ_CST);
	if (since_ns >= MOMENT_OPEN_NS)
		return false;
	for (int cpu = 0; cpu < rows->cpus; cpu++) {
		struct moment_ring *ring = &rows->rings[cpu];
		uint64_t count = __atomic_load_n(&ring->count, __ATOMIC_ACQUIRE);

		if (count > MOMENT_ROWS_MAX)
			return false;
		for (uint64_t i = 0; i < count; i++)
			*index_put(found, ring->rows[i].key, NULL) = (uintptr_t)&ring->rows[i];
	}
	return true;
}

void moment_restore(const struct moment_row *row, struct thread_state *record)
{
	record->wake = row->wake;
	record->sched = row->sched;
	record->sched.sequence_begun = record->sched.sequence_done;
	record->call_ns = row->call_ns;
	record->call = row->call;
}
