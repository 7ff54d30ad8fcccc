/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/changed_list.h"
#include "base/memory.h"
#include "kernel/bpf_call.h"

#include <bcc/libbpf.h>
#include <stdlib.h>
#include <sys/mman.h>

_Static_assert(sizeof(struct changed_ring) % 8 == 0, "values of an array are rounded up to 8");

static size_t rings_bytes(const struct changed_reader *reader)
{
	return (size_t)reader->cpus * sizeof(*reader->rings);
}

int changed_reader_init(struct changed_reader *reader, int sampling_map, int changed_map, int cpus,
			bool mapped)
{
	int err;

	*reader = (struct changed_reader){.sampling_map = sampling_map, .changed_map = changed_map};
	reader->cpus = cpus;
	reader->taken = memory_get((size_t)cpus * sizeof(*reader->taken));
	if (sampling_map < 0 || changed_map < 0 || !mapped)
		return 0;
	err = bpf_call_map_mapped(sampling_map, sizeof(*reader->sampling),
				  (void **)&reader->sampling);
	if (!err)
		err = bpf_call_map_mapped(changed_map, rings_bytes(reader),
					  (void **)&reader->rings);
	return err;
}

void changed_reader_done(struct changed_reader *reader)
{
	if (reader->sampling)
		munmap(reader->sampling, sizeof(*reader->sampling));
	if (reader->rings)
		munmap(reader->rings, rings_bytes(reader));
	free(reader->taken);
	*reader = (struct changed_reader){.sampling_map = -1, .changed_map = -1};
}

static bool scan_count_up(struct changed_reader *reader)
{
	struct sampling sampling;
	uint32_t zero = 0;

	if (reader->sampling) {
		__atomic_add_fetch(&reader->sampling->scan, 1, __ATOMIC_SEQ_CST);
		return true;
	}
	if (bpf_lookup_elem(reader->sampling_map, &zero, &sampling))
		return false;
	sampling.scan++;
	return !bpf_update_elem(reader->sampling_map, &zero, &sampling, BPF_ANY);
}

/* A CPU's ring as it is now, or NULL. */
static const struct changed_ring *ring_of(struct changed_reader *reader, int cpu)
{
	if (reader->rings)
		return &reader->rings[cpu];
	return bpf_lookup_elem(reader->changed_map, &cpu, &reader->copy) ? NULL : &reader->copy;
}

/* Visits what was listed on one CPU since the last time. False if some of it was overwritten. */
static bool ring_take(struct changed_reader *reader, int cpu, void (*visit)(void *to, uint32_t key),
		      void *to)
{
	const struct changed_ring *ring = ring_of(reader, cpu);
	uint64_t count, at = reader->taken[cpu];

	if (!ring)
		return false;
	count = __atomic_load_n(&ring->count, __ATOMIC_ACQUIRE);
	reader->taken[cpu] = count;
	if (count - at > CHANGED_MAX)
		return false;
	for (uint64_t i = at; i < count; i++)
		visit(to, __atomic_load_n(&ring->keys[i % CHANGED_MAX], __ATOMIC_RELAXED));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	/* one more may be being written */
	return __atomic_load_n(&ring->count, __ATOMIC_RELAXED) - at < CHANGED_MAX;
}

bool changed_reader_take(struct changed_reader *reader, void (*visit)(void *to, uint32_t key),
			 void *to)
{
	bool whole = reader->began;

	if (reader->sampling_map < 0 || reader->changed_map < 0)
		return false;
	for (int cpu = 0; cpu < reader->cpus; cpu++)
		whole &= ring_take(reader, cpu, visit, to);
	reader->began = true;
	/* After the rings, and before any record is read: a thread that is woken once its record
	 * was read is listed again. */
	return scan_count_up(reader) && whole;
}
