/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "maps/latency_reader.h"
#include "base/memory.h"
#include "base/thread.h"
#include "kernel/bpf_call.h"

#include <bcc/libbpf.h>
#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define RUN_NS 50000000l /* a program that has begun has long ended by then */

struct programs_wait {
	pthread_t thread;
	bool over;
};

void programs_wait(void)
{
	const struct timespec time = {.tv_nsec = RUN_NS};

	if (syscall(SYS_membarrier, MEMBARRIER_CMD_SHARED, 0)) /* name of GLOBAL until 4.15 */
		nanosleep(&time, NULL);
}

static void *wait_thread(void *of)
{
	struct programs_wait *wait = of;

	programs_wait();
	__atomic_store_n(&wait->over, true, __ATOMIC_RELEASE);
	return NULL;
}

/* Begins programs_wait() in a thread of its own. NULL: no thread could be made. */
static struct programs_wait *programs_wait_start(void)
{
	struct programs_wait *wait = memory_get(sizeof(*wait));

	if (!thread_begin(&wait->thread, wait_thread, wait))
		return wait;
	free(wait);
	return NULL;
}

static bool programs_wait_over(const struct programs_wait *wait)
{
	return __atomic_load_n(&wait->over, __ATOMIC_ACQUIRE);
}

/* Waits until wait is over, and frees it. NULL: waits here and now. */
static void programs_wait_end(struct programs_wait *wait)
{
	if (wait)
		pthread_join(wait->thread, NULL);
	else
		programs_wait();
	free(wait);
}

#define TURN_NS 1000000000ll
#define NO_THREAD_NS TURN_NS /* a program that has begun has long ended by then */
#define CHUNK 256

static size_t slots_bytes(const struct latency_reader *reader)
{
	return reader->slot_count * sizeof(struct latency_slot);
}

int latency_reader_init(struct latency_reader *reader, int control, const int *maps,
			const int *slots, int cpus, bool batch)
{
	int err = 0;

	*reader = (struct latency_reader){
		.control = control, .batch = batch, .drained = true, .first = 1};
	reader->slot_count = (size_t)cpus * LATENCY_SLOTS;
	memcpy(reader->maps, maps, sizeof(reader->maps));
	for (int i = 0; !err && i < LATENCY_TURNS; i++)
		if (slots[i] >= 0)
			err = bpf_call_map_mapped(slots[i], slots_bytes(reader),
						  (void **)&reader->slots[i]);
	return err;
}

/* Writes both words at once; the kernel copies them as one, too. */
static void control_write(const struct latency_reader *reader)
{
	struct latency_control control = {.turn = reader->turn, .event_set = reader->event_set};
	uint32_t zero = 0;

	bpf_update_elem(reader->control, &zero, &control, BPF_ANY);
}

uint32_t latency_turn_after(const struct latency_reader *from)
{
	return from && from->first == 1 ? 1 + LATENCY_TURNS : 1;
}

void latency_reader_begin(struct latency_reader *reader, bool counts, int64_t now_ns)
{
	reader->turn = counts ? reader->first : 0;
	reader->event_set = reader->first;
	reader->turned_ns = now_ns;
	control_write(reader);
}

static int other_turn(const struct latency_reader *reader)
{
	return reader->turn == reader->first ? 1 : 0;
}

static void turn_next(struct latency_reader *reader, int64_t now_ns)
{
	reader->turn = reader->first + (uint32_t)other_turn(reader);
	control_write(reader);
	reader->turned_ns = now_ns;
	reader->drained = false;
}

/* Makes the arrays large enough for that many more histograms. */
static void space_make(struct latency_reader *reader, size_t more)
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

		space_make(reader, chunk);
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
		space_make(reader, 1);
		reader->keys[reader->count] = key;
		if (bpf_lookup_elem(map, &key, &reader->values[reader->count]))
			return -errno;
		reader->count++;
		bpf_delete_elem(map, &key);
	}
	return 0;
}

static void drain_slots(struct latency_reader *reader, struct latency_slot *slots)
{
	for (size_t i = 0; slots && i < reader->slot_count; i++) {
		if (!slots[i].claim_count)
			continue;
		if (slots[i].taken) {
			space_make(reader, 1);
			reader->keys[reader->count] = slots[i].key;
			reader->values[reader->count++] = slots[i].latency;
		}
		slots[i] = (struct latency_slot){0};
	}
}

/* Reads the histograms of a turn. No program may still write them. */
static int drain(struct latency_reader *reader, int turn)
{
	int map = reader->maps[turn];

	reader->drained = true;
	drain_slots(reader, reader->slots[turn]);
	return reader->batch ? drain_batches(reader, map) : drain_singly(reader, map);
}

/* True if the programs that were running when the turn ended have ended, too. */
static bool programs_ended(const struct latency_reader *reader, int64_t now_ns)
{
	return reader->wait ? programs_wait_over(reader->wait)
			    : now_ns - reader->turned_ns > NO_THREAD_NS;
}

static void programs_await(struct latency_reader *reader)
{
	programs_wait_end(reader->wait);
	reader->wait = NULL;
}

int latency_reader_turn(struct latency_reader *reader, int64_t now_ns)
{
	if (!reader->turn)
		return 0;
	if (!reader->drained && programs_ended(reader, now_ns)) {
		if (reader->wait)
			programs_await(reader);
		return drain(reader, other_turn(reader));
	}
	if (reader->drained && now_ns - reader->turned_ns > TURN_NS) {
		turn_next(reader, now_ns);
		reader->wait = programs_wait_start();
	}
	return 0;
}

int latency_reader_finish(struct latency_reader *reader, int64_t now_ns)
{
	int result = 0;

	if (!reader->turn)
		return 0;
	if (!reader->drained) {
		programs_await(reader);
		result = drain(reader, other_turn(reader));
	}
	if (result)
		return result;
	turn_next(reader, now_ns);
	programs_wait();
	return drain(reader, other_turn(reader));
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

static void adopt(struct latency_reader *reader, struct latency_reader *from)
{
	if (!from->count)
		return;
	space_make(reader, from->count);
	memcpy(reader->keys + reader->count, from->keys, from->count * sizeof(*from->keys));
	memcpy(reader->values + reader->count, from->values, from->count * sizeof(*from->values));
	reader->count += from->count;
	from->count = 0;
}

int latency_reader_take_over(struct latency_reader *reader, struct latency_reader *from,
			     int64_t now_ns)
{
	int result = 0;

	if (!from->event_set)
		return 0;
	latency_reader_begin(reader, from->turn, now_ns);
	programs_wait();
	if (from->wait)
		programs_await(from);
	if (from->turn && !from->drained)
		result = drain(from, other_turn(from));
	if (from->turn && !result)
		result = drain(from, (int)(from->turn - from->first));
	from->turn = from->event_set = 0;
	adopt(reader, from);
	return result;
}

void latency_reader_done(struct latency_reader *reader)
{
	if (reader->event_set) { /* other samplers may go on with these probes */
		reader->turn = reader->event_set = 0;
		control_write(reader);
	}
	if (reader->wait)
		programs_await(reader);
	for (int i = 0; i < LATENCY_TURNS; i++)
		if (reader->slots[i])
			munmap(reader->slots[i], slots_bytes(reader));
	free(reader->keys);
	free(reader->values);
	*reader = (struct latency_reader){.control = -1};
}
