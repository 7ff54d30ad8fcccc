/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/scan_time_rows.h"
#include "base/clock.h"
#include "kernel/bpf_call.h"

#include <sys/mman.h>

_Static_assert(sizeof(struct scan_time_ring) % 8 == 0, "values of an array are rounded up to 8");

static size_t rings_bytes(const struct scan_time_rows *rows)
{
	return (size_t)rows->cpus * sizeof(*rows->rings);
}

int scan_time_rows_init(struct scan_time_rows *rows, int sampling_map, int scan_time_map, int cpus)
{
	int err;

	*rows = (struct scan_time_rows){.cpus = cpus};
	if (sampling_map < 0 || scan_time_map < 0)
		return 0;
	err = bpf_call_map_mapped(sampling_map, sizeof(*rows->sampling), (void **)&rows->sampling);
	return err ? err
		   : bpf_call_map_mapped(scan_time_map, rings_bytes(rows), (void **)&rows->rings);
}

void scan_time_rows_done(struct scan_time_rows *rows)
{
	if (rows->rings) {
		__atomic_store_n(&rows->sampling->scan_time_ns, 0, __ATOMIC_RELAXED);
		munmap(rows->rings, rings_bytes(rows));
	}
	if (rows->sampling)
		munmap(rows->sampling, sizeof(*rows->sampling));
	*rows = (struct scan_time_rows){0};
}

void scan_time_begin(struct scan_time_rows *rows, int64_t scan_time_ns)
{
	if (!rows->rings)
		return;
	for (int cpu = 0; cpu < rows->cpus; cpu++)
		__atomic_store_n(&rows->rings[cpu].count, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&rows->sampling->scan_time_ns, (__u64)scan_time_ns, __ATOMIC_RELEASE);
}

bool scan_time_end(struct scan_time_rows *rows, struct index *found)
{
	int64_t since_ns;

	index_empty(found);
	if (!rows->rings)
		return false;
	since_ns = clock_monotonic_ns() - (int64_t)rows->sampling->scan_time_ns;
	__atomic_store_n(&rows->sampling->scan_time_ns, 0, __ATOMIC_SEQ_CST);
	if (since_ns >= SCAN_TIME_OPEN_NS)
		return false;
	for (int cpu = 0; cpu < rows->cpus; cpu++) {
		struct scan_time_ring *ring = &rows->rings[cpu];
		uint64_t count = __atomic_load_n(&ring->count, __ATOMIC_ACQUIRE);

		if (count > SCAN_TIME_ROWS_MAX)
			return false;
		for (uint64_t i = 0; i < count; i++)
			*index_put(found, ring->rows[i].key, NULL) = (uintptr_t)&ring->rows[i];
	}
	return true;
}

void scan_time_restore(const struct scan_time_row *row, struct thread_state *record)
{
	record->wake = row->wake;
	record->sched = row->sched;
	record->sched.sequence_begun = record->sched.sequence_done;
	record->call_ns = row->call_ns;
	record->call = row->call;
}
