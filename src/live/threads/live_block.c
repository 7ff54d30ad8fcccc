/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "live/threads/live_block.h"
#include "base/clock.h"
#include "base/names.h"
#include "proc/devices.h"

static const char *const op_names[] = {
	[BLOCK_READ] = "read",	     [BLOCK_WRITE] = "write", [BLOCK_FLUSH] = "flush",
	[BLOCK_DISCARD] = "discard", [BLOCK_ERASE] = "erase", [BLOCK_ZEROES] = "zeroes",
};

const char *block_op_name(uint32_t op)
{
	const char *name = "other";

	if (op < sizeof(op_names) / sizeof(op_names[0]) && op_names[op])
		name = op_names[op];
	else if (op >= BLOCK_COMMAND_FROM && op <= BLOCK_COMMAND_TO)
		name = "command";
	return name_of_string(name);
}

/* When it was made; of one that nobody saw then, when it was issued. */
static int64_t made_ns(const struct block_request *request)
{
	return (int64_t)(request->queue_ns ? request->queue_ns : request->issue_ns);
}

static void oldest_find(struct live_block *block, const struct block_flights *flights,
			int64_t now_ns)
{
	block->of_ns = now_ns;
	index_clear(&block->oldest);
	for (size_t i = 0; i < flights->count; i++) {
		const struct block_flight *flight = &flights->items[i];
		uint64_t *oldest;

		if (!flight->key.request && flight->key.dev)
			continue; /* who asked last for a flush */
		oldest = index_put(&block->oldest, flight->request.tid, NULL);
		if (!*oldest ||
		    made_ns(&flight->request) < made_ns(&flights->items[*oldest - 1].request))
			*oldest = i + 1;
	}
}

void live_block_fill(struct live_block *block, const struct block_flights *flights,
		     const struct thread_state *record, int64_t now_ns, struct sample *sample)
{
	const struct block_request *request;
	const uint64_t *oldest;

	if (block->of_ns != now_ns)
		oldest_find(block, flights, now_ns);
	oldest = index_find(&block->oldest, record->sched.tid);
	if (!record->sched.tid || !oldest)
		return;
	request = &flights->items[*oldest - 1].request;
	/* the copy takes time: what came after its moment was not there */
	if (made_ns(request) > now_ns || request->tgid != record->identity.tgid)
		return;
	sample->io_dev = device_name(request->dev);
	sample->io_op = block_op_name(request->op);
	sample->io_bytes = request->bytes;
	sample->io_us = (now_ns - made_ns(request)) / NS_PER_US;
}

void live_block_done(struct live_block *block)
{
	index_clear(&block->oldest);
}
