/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/block_reader.h"
#include "base/memory.h"
#include "kernel/bpf_call.h"

#include <bcc/libbpf.h>
#include <errno.h>
#include <stdlib.h>

static int read_at_once(struct block_reader *reader, int map)
{
	uint32_t next[4] = {0}, count = BLOCK_MAX;
	int result = bpf_call_lookup_batch(map, NULL, next, reader->keys, reader->requests, &count);

	if (result && result != -ENOENT)
		return result;
	reader->count = count;
	return 0;
}

/* A request that ends sends the walk back to its start: it may go so far only. */
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

void block_reader_done(struct block_reader *reader)
{
	free(reader->keys);
	free(reader->requests);
	*reader = (struct block_reader){0};
}
