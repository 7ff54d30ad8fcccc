/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "recording/csv_ahead.h"
#include "base/memory.h"
#include "base/thread.h"
#include "recording/csv_index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES ((size_t)128 << 10)
/* Blocks that last for about as long as the unpacking of the next frame of a recording (8 MB). */
#define BLOCK_COUNT 48
#define BLOCKS_MOST (BLOCK_COUNT - 1) /* the block that was taken last is still being read */
/* Blocks to be filled, or empty, before a waiting thread goes on: waking a thread costs about as
 * much as reading a block. */
#define BLOCKS_AGAIN (BLOCK_COUNT / 8)

struct csv_ahead {
	struct csv_input *input;
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	/* under the mutex: numbers of blocks that were filled, and that were taken, in order */
	size_t filled, taken;
	bool ended;   /* nothing more is filled */
	bool stopped; /* nothing more is taken */
	struct csv_block blocks[BLOCK_COUNT];
	struct text_rest {
		char *bytes;
		size_t length, capacity;
	} rest; /* owned by the thread: bytes that the next block begins with */
};

static void block_grow(struct csv_block *block, size_t capacity)
{
	if (block->capacity >= capacity)
		return;
	block->capacity = capacity;
	block->bytes = memory_resize(block->bytes, capacity + CSV_INDEX_AHEAD, 1);
}

/* Reads until the block is full, or at the end of the input. */
static void block_fill(struct csv_ahead *ahead, struct csv_block *block)
{
	while (!block->err && block->length < block->capacity) {
		ssize_t got = ahead->input->read(ahead->input, block->bytes + block->length,
						 block->capacity - block->length, &block->e);

		if (got > 0)
			block->length += (size_t)got;
		else if (got != -EINTR)
			block->err = got ? (int)got : -ENODATA;
	}
}

/* Finds the records. Returns the offset after the last complete one. */
static size_t block_index(struct csv_block *block)
{
	size_t at = 0, ends = 0;

	block->run_count = 0;
	while (at < block->length) {
		char *end;
		size_t count, bytes;

		block->ends = memory_grow(block->ends, &block->ends_capacity,
					  ends + CSV_INDEX_BYTES, sizeof(*block->ends));
		bytes = csv_index_make(block->ends + ends, &count, block->bytes + at,
				       block->length - at);
		if (bytes) {
			block->runs = memory_grow(block->runs, &block->run_capacity,
						  block->run_count + 1, sizeof(*block->runs));
			block->runs[block->run_count++] = (struct csv_run){at, ends, count};
			ends += count;
			at += bytes;
			continue;
		}
		end = csv_record_end(block->bytes + at, block->bytes + block->length);
		if (!end)
			break;
		at = (size_t)(end - block->bytes) + 1;
	}
	return at;
}

static void block_make(struct csv_ahead *ahead, struct csv_block *block)
{
	size_t whole = 0;

	block->err = 0;
	block_grow(block, BLOCK_BYTES);
	block_grow(block, ahead->rest.length * 2);
	if (ahead->rest.length)
		memcpy(block->bytes, ahead->rest.bytes, ahead->rest.length);
	block->length = ahead->rest.length;
	for (;;) {
		block_fill(ahead, block);
		whole = block_index(block);
		if (whole || block->err || block->length > CSV_RECORD_MAX)
			break;
		block_grow(block, block->capacity * 2);
	}
	ahead->rest.length = 0;
	if (!whole || block->err)
		return;
	ahead->rest.length = block->length - whole;
	ahead->rest.bytes =
		memory_grow(ahead->rest.bytes, &ahead->rest.capacity, ahead->rest.length + 1, 1);
	memcpy(ahead->rest.bytes, block->bytes + whole, ahead->rest.length);
	block->length = whole;
}

/* Number of blocks that are filled and not taken. */
static size_t blocks_full(const struct csv_ahead *ahead)
{
	return ahead->filled - ahead->taken;
}

/* Waits until one of the variables under the mutex has changed. */
static void ahead_wait(struct csv_ahead *ahead)
{
	thread_rest(true);
	pthread_cond_wait(&ahead->changed, &ahead->mutex);
	thread_rest(false);
}

/* Waits while all blocks are filled, until some are not. */
static void ahead_rest(struct csv_ahead *ahead)
{
	while (!ahead->stopped && blocks_full(ahead) > BLOCKS_MOST - BLOCKS_AGAIN)
		ahead_wait(ahead);
}

static void *ahead_run(void *of)
{
	struct csv_ahead *ahead = of;

	pthread_mutex_lock(&ahead->mutex);
	while (!ahead->ended && !ahead->stopped) {
		struct csv_block *block = &ahead->blocks[ahead->filled % BLOCK_COUNT];

		if (blocks_full(ahead) == BLOCKS_MOST) {
			ahead_rest(ahead);
			continue;
		}
		pthread_mutex_unlock(&ahead->mutex);
		block_make(ahead, block);
		pthread_mutex_lock(&ahead->mutex);
		ahead->ended = block->err;
		ahead->filled++;
		if (ahead->ended || blocks_full(ahead) == BLOCKS_AGAIN)
			pthread_cond_signal(&ahead->changed);
	}
	pthread_mutex_unlock(&ahead->mutex);
	return NULL;
}

struct csv_ahead *csv_ahead_new(struct csv_input *input)
{
	struct csv_ahead *ahead = memory_get(sizeof(*ahead));

	ahead->input = input;
	pthread_mutex_init(&ahead->mutex, NULL);
	pthread_cond_init(&ahead->changed, NULL);
	if (!thread_begin(&ahead->thread, ahead_run, ahead))
		return ahead;
	free(ahead);
	return NULL;
}

struct csv_block *csv_ahead_next(struct csv_ahead *ahead)
{
	struct csv_block *block;

	pthread_mutex_lock(&ahead->mutex);
	if (!blocks_full(ahead))
		while (!ahead->ended && blocks_full(ahead) < BLOCKS_AGAIN)
			ahead_wait(ahead);
	block = &ahead->blocks[ahead->taken++ % BLOCK_COUNT];
	if (blocks_full(ahead) == BLOCKS_MOST - BLOCKS_AGAIN)
		pthread_cond_signal(&ahead->changed);
	pthread_mutex_unlock(&ahead->mutex);
	return block;
}

void csv_ahead_free(struct csv_ahead *ahead)
{
	if (!ahead)
		return;
	pthread_mutex_lock(&ahead->mutex);
	ahead->stopped = true;
	pthread_cond_signal(&ahead->changed);
	pthread_mutex_unlock(&ahead->mutex);
	pthread_join(ahead->thread, NULL);
	for (int i = 0; i < BLOCK_COUNT; i++) {
		free(ahead->blocks[i].bytes);
		free(ahead->blocks[i].ends);
		free(ahead->blocks[i].runs);
		error_done(&ahead->blocks[i].e);
	}
	free(ahead->rest.bytes);
	free(ahead);
}
