/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/block_reader.h"
#include "base/memory.h"
#include "kernel/bpf_call.h"

#include <bcc/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CARRY_TRIES 10 /* tries for a request that changes: it is made, issued and completed */

static int read_at_once(struct block_reader *reader, int map)
{
	uint32_t next[4] = {0}, count = BLOCK_MAX;
	int result = bpf_call_lookup_batch(map, NULL, next, reader->keys, reader->requests, &count);

	if (result && result != -ENOENT)
		return result;
	reader->count = count;
	return 0;
}

/* A request that ends sends the walk back to the first key: at most BLOCK_MAX requests are read. */
static void read_singly(struct block_reader *reader, int map)
{
	const struct block_key *key = NULL;

	while (reader->count < BLOCK_MAX &&
	       !bpf_get_next_key(map, (void *)key, &reader->keys[reader->count])) {
		key = &reader->keys[reader->count];
		if (!bpf_lookup_elem(map, (void *)key, &reader->requests[reader->count]))
			reader->count++;
	}
}

int block_reader_read(struct block_reader *reader, int map, bool batch)
{
	reader->count = 0;
	if (map < 0)
		return -ENOENT;
	if (!reader->keys) {
		reader->keys = memory_get(BLOCK_MAX * sizeof(*reader->keys));
		reader->requests = memory_get(BLOCK_MAX * sizeof(*reader->requests));
	}
	if (batch)
		return read_at_once(reader, map);
	read_singly(reader, map);
	return 0;
}

void block_flights_take(struct block_flights *flights, const struct block_reader *reader)
{
	flights->items = memory_grow(flights->items, &flights->capacity, reader->count,
				     sizeof(*flights->items));
	flights->count = reader->count;
	for (size_t i = 0; i < reader->count; i++)
		flights->items[i] = (struct block_flight){reader->keys[i], reader->requests[i]};
}

void block_flights_done(struct block_flights *flights)
{
	free(flights->items);
	*flights = (struct block_flights){0};
}

/* The programs of an event run right after each other: once the second map has been written, the
 * first one must still have the same value. */
static void request_carry(int map, int second, struct block_key *key, struct block_request *request)
{
	struct block_request now;
	int tries = CARRY_TRIES;

	do {
		bpf_update_elem(second, key, request, BPF_ANY);
		if (bpf_lookup_elem(map, key, &now)) {
			bpf_delete_elem(second, key);
			return;
		}
		if (!memcmp(&now, request, sizeof(now)))
			return;
		*request = now;
	} while (--tries);
}

void block_reader_carry(struct block_reader *reader, int map, int second, bool batch)
{
	if (block_reader_read(reader, map, batch))
		return;
	for (size_t i = 0; i < reader->count; i++)
		request_carry(map, second, &reader->keys[i], &reader->requests[i]);
}

void disk_times_read(int map, void (*take)(void *to, uint32_t dev, const struct disk_times *times),
		     void *to)
{
	uint32_t keys[2], *key = NULL;
	struct disk_times times;

	/* no key is ever removed */
	for (int i = 0; map >= 0 && i < DISKS_MAX && !bpf_get_next_key(map, key, &keys[i % 2]);
	     i++) {
		key = &keys[i % 2];
		if (!bpf_lookup_elem(map, key, &times))
			take(to, *key, &times);
	}
}

static void times_carry(void *to, uint32_t dev, const struct disk_times *times)
{
	const int *second = to;
	struct disk_times copy = *times;

	bpf_update_elem(*second, &dev, &copy, BPF_ANY);
}

void disk_times_carry(int map, int second)
{
	if (second >= 0)
		disk_times_read(map, times_carry, &second);
}

void block_reader_done(struct block_reader *reader)
{
	free(reader->keys);
	free(reader->requests);
	*reader = (struct block_reader){0};
}
