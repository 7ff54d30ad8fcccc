/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "kernel/latency_reader.h"
#include "base/memory.h"
#include "kernel/bpf_call.h"

#include <bcc/libbpf.h>
#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TURN_NS 1000000000ll
#define RUN_NS 50000000ll /* a program that has begun has long ended by then */
#define CHUNK 256

void latency_reader_init(struct latency_reader *reader, int control, const int *maps, bool batch)
{
	*reader = (struct latency_reader){.control = control, .batch = batch, .drained = true};
	memcpy(reader->maps, maps, sizeof(reader->maps));
}

static void turn_set(struct latency_reader *reader, uint32_t turn)
{
	struct latency_control control = {.turn = turn};
	uint32_t zero = 0;

	bpf_update_elem(reader->control, &zero, &control, BPF_ANY);
	reader->turn = turn;
}

void latency_reader_begin(struct latency_reader *reader, int64_t now_ns)
{
	turn_set(reader, 1);
	reader->turned_ns = now_ns;
}

static void turn_next(struct latency_reader *reader, int64_t now_ns)
{
	turn_set(reader, reader->turn == 1 ? 2 : 1);
	reader->turned_ns = now_ns;
	reader->drained = false;
}

/* Room for so many more. */
static void room_make(struct latency_reader *reader, size_t more)
{
	if (reader->count + more <= reader->capacity)
		return;
	reader->capacity = 2 * reader->count + more;
	reader->keys = memory_resize(reader->keys, reader->capacity, sizeof(*reader->keys));
	reader->values = memory_resize(reader->values, reader->capacity, sizeof(*reader->values));
}

static int drain_batches(struct latency_reader *reader, int map)
{
	uint32_t position = 0, chunk = CHUNK;
	bool first = true;
	int result;

	do {
		uint32_t next = 0, count = chunk;

		room_make(reader, chunk);
		result = bpf_call_lookup_delete_batch(map, first ? NULL : &position, &next,
						      reader->keys + reader->count,
						      reader->values + reader->count, &count);
		if (result == -ENOSPC && chunk < LATENCY_MAX) {
			chunk *= 2; /* a bucket longer than the chunk */
			continue;
		}
		if (result == -EINTR)
			continue;
		if (result && result != -ENOENT)
			return result;
		reader->count += count;
		position = next;
		first = false;
	} while (result != -ENOENT);
	return 0;
}

/* The map is not written meanwhile: a key that was not deleted has a next one. */
static int drain_singly(struct latency_reader *reader, int map)
{
	struct latency_key key = {0}, next;
	bool more = !bpf_get_next_key(map, NULL, &next);

	while (more) {
		key = next;
		more = !bpf_get_next_key(map, &key, &next);
		room_make(reader, 1);
		reader->keys[reader->count] = key;
		if (bpf_lookup_elem(map, &key, &reader->values[reader->count]))
			return -errno;
		reader->count++;
		bpf_delete_elem(map, &key);
	}
	return 0;
}

/* Reads the map whose turn it is not. No program must be left that writes it. */
static int drain(struct latency_reader *reader, int map)
{
	reader->drained = true;
	return reader->batch ? drain_batches(reader, map) : drain_singly(reader, map);
}

static int other_map(const struct latency_reader *reader)
{
	return reader->maps[reader->turn == 1 ? 1 : 0];
}

/* Until all programs that run now have ended: they run without preemption, and the kernel waits for
 * that (4.3; synchronize_rcu() in kernel/sched/membarrier.c, which is refused on nohz_full hosts).
 */
static void programs_wait(void)
{
	const struct timespec time = {.tv_nsec = RUN_NS};

	if (syscall(SYS_membarrier, MEMBARRIER_CMD_SHARED, 0))
		nanosleep(&time, NULL);
}

int latency_reader_turn(struct latency_reader *reader, int64_t now_ns)
{
	if (!reader->turn)
		return 0;
	if (!reader->drained && now_ns - reader->turned_ns > RUN_NS)
		return drain(reader, other_map(reader));
	if (reader->drained && now_ns - reader->turned_ns > TURN_NS)
		turn_next(reader, now_ns);
	return 0;
}

int latency_reader_finish(struct latency_reader *reader, int64_t now_ns)
{
	int result = 0;

	if (!reader->turn)
		return 0;
	if (!reader->drained) {
		programs_wait();
		result = drain(reader, other_map(reader));
	}
	if (result)
		return result;
	turn_next(reader, now_ns);
	programs_wait();
	return drain(reader, other_map(reader));
}

int latency_reader_end(struct latency_reader *reader)
{
	int written, other, result = 0;

	if (!reader->turn)
		return 0;
	written = reader->maps[reader->turn - 1];
	other = other_map(reader);
	turn_set(reader, 0);
	programs_wait();
	if (!reader->drained)
		result = drain(reader, other);
	return result ? result : drain(reader, written);
}

void latency_reader_take(struct latency_reader *reader,
			 void (*take)(void *to, const struct latency_key *key,
				      const struct latency *latency),
			 void *to)
{
	for (size_t i = 0; i < reader->count; i++)
		take(to, &reader->keys[i], &reader->values[i]);
	reader->count = 0;
}

void latency_reader_adopt(struct latency_reader *reader, struct latency_reader *from)
{
	if (!from->count)
		return;
	room_make(reader, from->count);
	memcpy(reader->keys + reader->count, from->keys, from->count * sizeof(*from->keys));
	memcpy(reader->values + reader->count, from->values, from->count * sizeof(*from->values));
	reader->count += from->count;
	from->count = 0;
}

void latency_reader_done(struct latency_reader *reader)
{
	if (reader->turn)
		turn_set(reader, 0); /* others may sample on with these probes */
	free(reader->keys);
	free(reader->values);
	*reader = (struct latency_reader){.control = -1};
}
