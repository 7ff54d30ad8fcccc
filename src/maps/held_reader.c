/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/held_reader.h"
#include "kernel/bpf_call.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

/* Tries to copy what is being written: a change takes less than a microsecond, unless its thread
 * loses the CPU meanwhile. */
#define TRIES 64

_Static_assert(sizeof(struct probe_held) % 8 == 0, "values of an array are rounded up to 8");

static size_t bytes_of(const struct held_reader *reader)
{
	return reader->count * sizeof(*reader->mapped);
}

int held_reader_init(struct held_reader *reader, int map, uint32_t count)
{
	void *mapped = NULL;
	int err;

	*reader = (struct held_reader){0};
	if (map < 0)
		return 0;
	err = bpf_call_map_mapped(map, count * sizeof(*reader->mapped), &mapped);
	if (!err)
		*reader = (struct held_reader){mapped, count};
	return err;
}

void held_reader_done(struct held_reader *reader)
{
	if (reader->mapped)
		munmap((void *)reader->mapped, bytes_of(reader));
	*reader = (struct held_reader){0};
}

/* The programs write sequence_begun, the rest, then sequence_done: the order of reading is the
 * reverse. */
static bool held_copy(const struct probe_held *from, struct probe_held *copy)
{
	for (int tries = 0; tries < TRIES; tries++) {
		uint64_t done = __atomic_load_n(&from->sequence_done, __ATOMIC_ACQUIRE);

		memcpy(copy, from, sizeof(*copy));
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&from->sequence_begun, __ATOMIC_RELAXED) == done)
			return true;
	}
	return false;
}

void held_read(const struct held_reader *reader, const struct thread_state *record,
	       int64_t scan_time_ns, struct held_values *values)
{
	struct probe_held held;

	values->holds = 0;
	if (record->key >= reader->count || !record->sched.tid ||
	    !held_copy(&reader->mapped[record->key], &held) ||
	    held.start_boot_ns != record->identity.start_boot_ns ||
	    held.program != record->identity.known >> IDENTITY_PROGRAM_SHIFT)
		return;
	if (held.kept_scan_ns == (uint64_t)scan_time_ns) {
		values->holds = held.kept_holds;
		memcpy(values->values, held.kept_values, sizeof(values->values));
	} else {
		values->holds = held.holds;
		memcpy(values->values, held.values, sizeof(values->values));
	}
}
