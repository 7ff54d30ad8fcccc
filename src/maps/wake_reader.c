/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/wake_reader.h"
#include "base/clock.h"
#include "base/memory.h"
#include "kernel/bpf_call.h"

#include <stdlib.h>
#include <sys/mman.h>

#define STACK_BYTES 16384    /* kernel stack, where the offset of its registers is not known */
#define WRITTEN_NS NS_PER_MS /* age at which a begun row is done, or never will be */

_Static_assert(sizeof(struct wake_ring) % 8 == 0, "values of an array are rounded up to 8");

static size_t rings_bytes(const struct wake_reader *reader)
{
	return (size_t)reader->cpus * sizeof(*reader->rings);
}

int wake_reader_init(struct wake_reader *reader, int map, int cpus, uint32_t stack_bytes)
{
	*reader = (struct wake_reader){.cpus = cpus, .stack_bytes = stack_bytes};
	if (map < 0)
		return 0;
	reader->taken = memory_get((size_t)cpus * sizeof(*reader->taken));
	return bpf_call_map_mapped(map, rings_bytes(reader), (void **)&reader->rings);
}

void wake_reader_before(struct wake_reader *reader, int64_t before_ns)
{
	for (int cpu = 0; reader->rings && cpu < reader->cpus; cpu++)
		__atomic_store_n(&reader->rings[cpu].before_ns, (__u64)before_ns, __ATOMIC_RELEASE);
}

/* Copies the row of a slot; false: the copy is not whole. */
static bool row_copy(const struct wake_row *from, uint64_t slot, struct wake_row *to)
{
	uint64_t done = __atomic_load_n(&from->done, __ATOMIC_ACQUIRE), begun;

	*to = *from;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	begun = __atomic_load_n(&from->begun, __ATOMIC_RELAXED);
	return done == slot && begun == slot;
}

static void ring_take(struct wake_reader *reader, int cpu,
		      void (*take)(void *to, const struct wake_row *row), void *to)
{
	const struct wake_ring *ring = &reader->rings[cpu];
	uint64_t count = __atomic_load_n(&ring->count, __ATOMIC_ACQUIRE);
	uint64_t *taken = &reader->taken[cpu];
	struct wake_row row;

	if (count - *taken > WAKE_ROWS_MAX) {
		reader->lost_count += count - *taken - WAKE_ROWS_MAX;
		*taken = count - WAKE_ROWS_MAX;
	}
	for (; *taken < count; (*taken)++) {
		if (row_copy(&ring->rows[*taken % WAKE_ROWS_MAX], *taken + 1, &row))
			take(to, &row);
		else if (*taken + 1 == count)
			break; /* the row is being written */
		else
			reader->lost_count++;
	}
}

int64_t wake_reader_take(struct wake_reader *reader,
			 void (*take)(void *to, const struct wake_row *row), void *to)
{
	int64_t now_ns = clock_monotonic_ns();

	for (int cpu = 0; reader->rings && cpu < reader->cpus; cpu++)
		ring_take(reader, cpu, take, to);
	return now_ns - WRITTEN_NS;
}

bool wake_row_interrupts(const struct wake_reader *reader, const struct wake_row *row)
{
	uint32_t bytes = reader->stack_bytes ? reader->stack_bytes : STACK_BYTES;

	return row->flags & WAKE_BY_IDLE ||
	       (row->waker_stack && row->context - row->waker_stack >= bytes);
}

void wake_reader_done(struct wake_reader *reader)
{
	if (reader->rings) {
		wake_reader_before(reader, 0);
		munmap(reader->rings, rings_bytes(reader));
	}
	free(reader->taken);
	*reader = (struct wake_reader){0};
}
