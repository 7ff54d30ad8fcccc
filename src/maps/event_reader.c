/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/event_reader.h"
#include "base/memory.h"
#include "kernel/bpf_call.h"

#include <bcc/libbpf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Least time between two equal events of a thread: an exec takes longer, and so does what --slower
 * reports. */
#define TWIN_NS 200000ull

_Static_assert(sizeof(struct event_ring) % 8 == 0, "values of an array are rounded up to 8");

static size_t rings_bytes(const struct event_reader *reader)
{
	return (size_t)reader->cpus * sizeof(*reader->rings);
}

int event_reader_init(struct event_reader *reader, int map, int cpus, bool mapped)
{
	*reader = (struct event_reader){.map = map, .cpus = cpus};
	if (map < 0)
		return 0;
	reader->taken = memory_get((size_t)cpus * sizeof(*reader->taken));
	reader->awaited = memory_get((size_t)cpus * sizeof(*reader->awaited));
	if (mapped)
		return bpf_call_map_mapped(map, rings_bytes(reader), (void **)&reader->rings);
	reader->copy = memory_get(sizeof(*reader->copy));
	return 0;
}

/* A CPU's ring as it is now, or NULL. */
static const struct event_ring *ring_read(struct event_reader *reader, uint32_t cpu)
{
	if (reader->rings)
		return &reader->rings[cpu];
	return bpf_lookup_elem(reader->map, &cpu, reader->copy) ? NULL : reader->copy;
}

static struct trace_event *event_new(struct event_reader *reader)
{
	reader->events = memory_grow(reader->events, &reader->capacity, reader->count + 1,
				     sizeof(*reader->events));
	return &reader->events[reader->count];
}

/* Copies the event of a slot. False: the copy is not whole, and *begun says which event is
 * there. */
static bool event_copy(const struct trace_event *from, uint64_t slot, struct trace_event *to,
		       uint64_t *begun)
{
	uint64_t done = __atomic_load_n(&from->done, __ATOMIC_ACQUIRE);

	*to = *from;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	*begun = __atomic_load_n(&from->begun, __ATOMIC_RELAXED);
	return done == slot && *begun == slot;
}

/* Reads the events of one CPU. await: an event that is being written is left for the next time,
 * with all after it. True if nothing was left. */
static bool ring_take(struct event_reader *reader, int cpu, const struct event_ring *ring,
		      bool await)
{
	uint64_t count = __atomic_load_n(&ring->count, __ATOMIC_ACQUIRE), begun;
	uint64_t *taken = &reader->taken[cpu];

	if (count - *taken > EVENTS_MAX) {
		reader->lost_count += count - *taken - EVENTS_MAX;
		*taken = count - EVENTS_MAX;
	}
	for (; *taken < count; (*taken)++) {
		uint64_t slot = *taken + 1;

		if (event_copy(&ring->events[*taken % EVENTS_MAX], slot, event_new(reader),
			       &begun)) {
			reader->count++;
			continue;
		}
		/* the event is being written, which ends before the next time */
		if (await && begun <= slot && reader->awaited[cpu] != slot) {
			reader->awaited[cpu] = slot;
			return false;
		}
		reader->lost_count++;
	}
	return true;
}

/* Reads the events of all CPUs. True if nothing is left. */
static bool rings_take(struct event_reader *reader, bool await)
{
	bool all = true;

	for (int cpu = 0; reader->map >= 0 && cpu < reader->cpus; cpu++) {
		const struct event_ring *ring = ring_read(reader, (uint32_t)cpu);

		if (ring)
			all &= ring_take(reader, cpu, ring, await);
	}
	return all;
}

static int event_compare(const void *a, const void *b)
{
	const struct trace_event *x = a, *y = b;

	return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

void event_reader_read(struct event_reader *reader)
{
	rings_take(reader, true);
	if (reader->count)
		qsort(reader->events, reader->count, sizeof(*reader->events), event_compare);
}

void event_reader_give(struct event_reader *reader,
		       void (*take)(void *to, const struct trace_event *event), void *to)
{
	for (size_t i = 0; i < reader->count; i++)
		take(to, &reader->events[i]);
	reader->count = 0;
}

void event_reader_take(struct event_reader *reader,
		       void (*take)(void *to, const struct trace_event *event), void *to)
{
	event_reader_read(reader);
	event_reader_give(reader, take, to);
}

/* True if a and b are one event, recorded by two programs one after the other. */
static bool is_twin(const struct trace_event *a, const struct trace_event *b)
{
	return a->key.kind == b->key.kind && a->key.tid == b->key.tid &&
	       !memcmp(a->key.what, b->key.what, sizeof(a->key.what)) &&
	       a->end_ns - b->end_ns + TWIN_NS < 2 * TWIN_NS;
}

static bool has_twin(const struct event_reader *reader, const struct trace_event *event)
{
	for (size_t i = 0; i < reader->count; i++)
		if (is_twin(&reader->events[i], event))
			return true;
	return false;
}

/* Drops the events of reader that from has, too. */
static void twins_drop(struct event_reader *reader, const struct event_reader *from)
{
	size_t left = 0;

	for (size_t i = 0; i < reader->count; i++)
		if (!has_twin(from, &reader->events[i]))
			reader->events[left++] = reader->events[i];
	reader->count = left;
}

void event_reader_adopt(struct event_reader *reader, struct event_reader *from)
{
	rings_take(from, false); /* no more reads of from */
	rings_take(reader, true);
	twins_drop(reader, from);
	for (size_t i = 0; i < from->count; i++) {
		*event_new(reader) = from->events[i];
		reader->count++;
	}
	reader->lost_count += from->lost_count;
	from->count = 0;
}

void event_reader_done(struct event_reader *reader)
{
	if (reader->rings)
		munmap(reader->rings, rings_bytes(reader));
	free(reader->copy);
	free(reader->taken);
	free(reader->awaited);
	free(reader->events);
	*reader = (struct event_reader){.map = -1};
}
